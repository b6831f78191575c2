"""What can go wrong, said plainly: what was asked, what exists, what to do next."""


class HeadscopeError(Exception):
    """Every error that a user of Headscope can cause or meet."""


class UnknownHeadError(HeadscopeError, LookupError):
    """A head, layer or stack that the model or trace does not have."""


class UnknownTokenError(HeadscopeError, LookupError):
    """A token position or text that the input does not have."""


class NotRecordedError(HeadscopeError, LookupError):
    """The trace does not hold what was asked for: it was recorded at a smaller level."""


class NotInAtlasError(HeadscopeError):
    """What an atlas without queries and keys cannot answer: it was imported, or came with a model."""


class NotMadeError(HeadscopeError, LookupError):
    """A map or scores of an atlas that nobody has asked for yet."""


class InputError(HeadscopeError, ValueError):
    """An input that the model cannot take: the wrong kind, empty, too long, the wrong shape."""


class AbsentPatternError(InputError):
    """A pattern that cannot occur in the inputs that were searched: `reason` says why, `example` has it."""

    def __init__(self, reason: str, example: str = "") -> None:
        super().__init__(f"{reason} It can in {example}." if example else reason)
        self.reason, self.example = reason, example


class TooLongError(InputError):
    """An input that is too long for the model; `truncate=True` would cut it to its first `cut_to`: `512 tokens`."""

    def __init__(self, message: str, cut_to: str):
        super().__init__(message)
        self.cut_to = cut_to


class TooManyNumbersError(InputError):
    """A table that would hold more rows than anybody can use; the message says what would fit."""


class InterventionError(HeadscopeError, ValueError):
    """An edit that cannot be applied to this model or this input."""


class LoadError(HeadscopeError, OSError):
    """A model or a trace that cannot be read."""


class CaptureError(HeadscopeError, RuntimeError):
    """Attention that we cannot compute exactly: refused, never guessed."""


class BudgetError(HeadscopeError, MemoryError):
    """A run that would not fit the memory budget, found out before it starts."""


class MissingExtraError(HeadscopeError, ImportError):
    """An optional package that this part needs is not installed."""


class Cancelled(HeadscopeError):
    """The run was stopped on request."""


class HeadscopeWarning(UserWarning):
    """Something a user should know about the model or the run, short of an error."""

"""What a report of trust says of each head, for the report of heads: a badge beside its role."""

from pathlib import Path
from typing import Any

from headscope.errors import InputError
from headscope.models import Model
from headscope.reports.trust_report import TrustReport
from headscope.runs.manifest import identity


def trust_of_heads(trust: TrustReport | str | Path, model: Model) -> dict[str, Any]:
    """The verdicts of a report of trust, or of the folder that holds one; a report of another model is refused."""
    report = trust if isinstance(trust, TrustReport) else TrustReport.load(trust)
    about = report.about
    if about["weights"] != identity(model)["weights"]:
        raise InputError(
            f"the report of trust in {report.folder} is of {about['model']}, with other weights than {model.name}: "
            "test this model with hs.trust first."
        )
    heads = {
        head_trust.name: {"verdict": head_trust.verdict, "sentences": [head_trust.summary, *head_trust.sentences]}
        for head_trust in report.heads.values()
    }
    return {**{name: about[name] for name in ("corpus", "task", "n_texts")}, "heads": heads}


def trust_note(trust: dict[str, Any]) -> str:
    """What was tested, and how many heads have which verdict."""
    verdicts = [head["verdict"] for head in trust["heads"].values()]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    task = trust["task"].replace("_", " ")
    return f"Trust: attention tested on {trust['n_texts']:,} texts of {trust['corpus']} ({task}): {counts}."

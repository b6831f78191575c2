"""TLS, for servers that listen on a network."""

import asyncio
import functools
import ssl
from dataclasses import dataclass
from pathlib import Path

from headscope.errors import LoadError

HANDSHAKE_SECONDS = 10.0
"""Time to agree on a key: until then a connection is not counted, and nobody is asked who it is."""


@dataclass(frozen=True)
class Certificate:
    """The files of a certificate, with those that vouch for it, and of its private key; the key may be in the same."""

    certfile: Path
    keyfile: Path | None = None

    def check(self) -> None:
        """Refuse files that a server cannot be started with, before it loads any model."""
        for file in filter(None, (self.certfile, self.keyfile)):
            try:
                file.open("rb").close()
            except OSError as error:
                raise LoadError(f"the certificate cannot be read: {file}: {error.strerror or error}.") from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certfile, self.keyfile, password=self._refuse_password)
        except (ssl.SSLError, ValueError) as error:
            key = self.keyfile or self.certfile
            raise LoadError(
                f"{self.certfile} and {key} are not a certificate and its private key in PEM format: {error}."
            ) from error

    def _refuse_password(self) -> str:
        key = self.keyfile or self.certfile
        raise LoadError(
            f"the private key in {key} has a password, which a server cannot ask for. Write it without: "
            f"openssl pkey -in {key} -out key.pem (a file that only you may read)."
        )


def bound_handshakes(loop: asyncio.AbstractEventLoop) -> None:
    """End connections that do not agree on a key in time; asyncio waits a minute, and uvicorn has no setting."""
    loop.create_server = functools.partial(  # type: ignore[method-assign]
        loop.create_server, ssl_handshake_timeout=HANDSHAKE_SECONDS
    )

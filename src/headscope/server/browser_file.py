"""Opening a browser by way of a file that only this user can read: addresses stand in the list of processes."""

import html
import shutil
import tempfile
import threading
import webbrowser
from pathlib import Path

PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>Headscope</title>
<p>Opening the workbench. <a href="{address}">Open it</a> if nothing happens.</p>
"""


class BrowserFile:
    """A page that goes on to an address, in a private folder; it is gone after `seconds`, or on `remove`."""

    def __init__(self, address: str, seconds: float):
        self._folder = Path(tempfile.mkdtemp(prefix="headscope-"))
        self.path = self._folder / "open.html"
        self.path.touch(mode=0o600)
        self.path.write_text(PAGE.format(address=html.escape(address)), encoding="utf-8")
        self._timer = threading.Timer(seconds, self.remove)
        self._timer.daemon = True
        self._timer.start()

    def open(self) -> None:
        """Start the browser, in a thread: some keep whoever starts them waiting."""
        threading.Thread(target=webbrowser.open, args=(self.path.as_uri(),), daemon=True).start()

    def remove(self) -> None:
        """Delete the file."""
        self._timer.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)

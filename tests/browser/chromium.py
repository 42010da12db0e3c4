"""Where the browser of these tests comes from; run as a program it also tries to install one.

Taken is what stands on the PATH, or else what Playwright has downloaded. To install is left to `make test`: Debian's
package where root may, else Playwright's download. Without a browser these tests are skipped, with one line that says
so; where `$CONTEXTMESH_BROWSER` is `required`, as in CI, they fail instead.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REQUIRED = os.environ.get("CONTEXTMESH_BROWSER") == "required"
HOW = (
    "no Chromium found, so the tests in tests/browser cannot run; get one with `apt install chromium` (Debian) or"
    " `.venv/bin/python -m playwright install chromium`"
)
ANSWER_S = 30  # within which a browser says its version
INSTALL_S = 600


def find() -> str | None:
    """Return the path of a Chromium that starts, or None."""
    on_path = (found for name in NAMES if (found := shutil.which(name)))
    return next(filter(starts, on_path), None) or downloaded()


def starts(path: str) -> bool:
    """Whether a browser says its version: on some systems `chromium-browser` only says how to install one."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=ANSWER_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def downloaded() -> str | None:
    """Return the path of Playwright's own Chromium, or None where it was not downloaded."""
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def install() -> None:
    """Try to install a Chromium; what the installers say is kept out of the way unless it is needed."""
    if may_use_apt():
        run("apt-get", "-qq", "-o", "Acquire::Retries=1", "update")
        run("apt-get", "-qq", "install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core")
        if find():
            return
    download = (sys.executable, "-m", "playwright", "install", "chromium")
    if os.geteuid() == 0:
        run(*download, "--with-deps")
    if not find():
        run(*download)


def may_use_apt() -> bool:
    """Whether this is root on Debian; Ubuntu's package of the same name is none, but a snap's forerunner."""
    try:
        debian = platform.freedesktop_os_release().get("ID") == "debian"
    except OSError:
        return False
    return debian and os.geteuid() == 0 and shutil.which("apt-get") is not None


def run(*words: str) -> None:
    """Run an installer; whether it worked is seen by what is there afterwards."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            words, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        said, failed = str(error), True
    else:
        said, failed = done.stdout + done.stderr, done.returncode != 0
    if failed and REQUIRED:
        sys.stderr.write(said)


def main() -> None:
    """Find or install a Chromium; say in one line what could not be had. It is the tests that fail, or are skipped."""
    if find():
        return
    sys.stdout.write("No Chromium found for the browser tests: trying to install one ...\n")
    sys.stdout.flush()
    install()
    if not find():
        sys.stdout.write(f"{HOW}\n")


if __name__ == "__main__":
    main()

"""The command line: thin over Workspace. `contextmesh --help` lists the commands."""

import importlib.util
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

import contextmesh as cm
from contextmesh import demo as acme
from contextmesh.errors import ContextMeshError, InvalidNameError, UsageError
from contextmesh.importers.postmortems import read_postmortems
from contextmesh.investigation.inputs import check_note
from contextmesh.investigation.words import visible
from contextmesh.investigation.workspace import Workspace

DONE, FAILED, WRONG = 0, 1, 2
INTERRUPTED = 130
NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "01_quickstart.ipynb"
FORMATS = {"postmortems": read_postmortems}

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
limit = click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many at most.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--url", help="A FalkorDB server, such as falkor://localhost:6379. [env: CONTEXTMESH_URL]")
@click.option("--data-dir", help="The embedded server's folder. [env: CONTEXTMESH_DATA_DIR]")
@click.version_option(cm.__version__)
@click.pass_context
def cli(context: click.Context, url: str | None, data_dir: str | None) -> None:
    """Investigate incidents with a shared, durable graph memory in FalkorDB."""
    context.obj = {"url": url, "data_dir": data_dir}


def _open(context: click.Context, name: str, *, create: bool = False) -> Workspace:
    return cm.open(name, **context.obj, create=create)


@cli.command()
@click.argument("workspace", default="acmeshop")
@click.pass_context
def demo(context: click.Context, workspace: str) -> None:
    """Run the synthetic AcmeShop investigation: a note on Monday, a question on Tuesday."""
    label, text = acme.monday()
    with _open(context, workspace, create=True) as ws:
        acme.acmeshop(ws)
        ws.session(label).note(text, author="AcmeShop (synthetic)")
        click.echo(f"{acme.notice()}\n")
        click.echo(f"{label}: saved the note '{text}' in workspace '{workspace}', and closed it.\n")
    label, question = acme.tuesday()
    with _open(context, workspace) as ws:
        click.echo(f"{label}: opened it again, and asked:\n")
        click.echo(ws.session(label).investigate(question).to_text())
    click.echo(
        "\nNext: `make lab` opens the same investigation as a notebook (notebooks/01_quickstart.ipynb).\n"
        f'      `contextmesh ask {workspace} "your question"` asks another; from a checkout, .venv/bin/contextmesh.',
    )


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def lab(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Open JupyterLab on the quickstart notebook; further ARGUMENTS go to JupyterLab."""
    if importlib.util.find_spec("jupyterlab") is None:
        msg = "JupyterLab is not installed; run `make lab` in a checkout, or pip install 'contextmesh[lab]'"
        raise click.ClickException(msg)
    for name, value in (("CONTEXTMESH_URL", context.obj["url"]), ("CONTEXTMESH_DATA_DIR", context.obj["data_dir"])):
        if value:  # the notebook opens what the command line names
            os.environ.pop("CONTEXTMESH_URL", None)
            os.environ.pop("CONTEXTMESH_DATA_DIR", None)
            os.environ[name] = value
    start = NOTEBOOK if NOTEBOOK.is_file() else Path.cwd()
    words = [sys.executable, "-m", "jupyterlab", str(start), *arguments]
    sys.stdout.flush()
    os.execv(sys.executable, words)  # noqa: S606 - in our place, so that a signal reaches it


@cli.command()
@click.argument("workspace")
@click.argument("text")
@click.option("--session", default="command line", show_default=True, help="The session it belongs to.")
@click.option("--at", help="When it was observed, ISO 8601 with a zone.")
@click.option("--author", help="Who says so.")
@click.option("--id", "note_id", help="Your own id; by default it follows from session and text.")
@as_json
@click.pass_context
def note(  # noqa: PLR0917 - one parameter an option, which click passes by name
    context: click.Context,
    workspace: str,
    text: str,
    session: str,
    at: str | None,
    author: str | None,
    note_id: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Save TEXT as a note (`-` reads standard input); the same text in the same session is saved once."""
    words = _piped() if text == "-" else text
    check_note(words, at)
    with _open(context, workspace, create=True) as ws:
        saved = ws.session(session).note(words, id=note_id, at=at, author=author)
    _print({"id": saved.id, "session": session, **saved.data} if as_json else f"saved {saved.id}")


@cli.command()
@click.argument("workspace")
@click.argument("question")
@click.option("--session", default="command line", show_default=True, help="The session that asks.")
@click.option("--hypothesis", is_flag=True, help="Ask a language model at Groq, too. [env: GROQ_API_KEY]")
@as_json
@click.pass_context
def ask(  # noqa: PLR0917 - one parameter an option, which click passes by name
    context: click.Context,
    workspace: str,
    question: str,
    session: str,
    hypothesis: bool,  # noqa: FBT001 - click passes it by name
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Investigate QUESTION and print answer, evidence, paths, gaps and warnings."""
    with _open(context, workspace) as ws:
        found = ws.session(session).investigate(question, hypothesis=hypothesis)
        _print(found.to_dict() if as_json else found.to_text())


@cli.command("import")
@click.argument("format", type=click.Choice(list(FORMATS)))
@click.argument("workspace")
@click.argument("files", nargs=-1, required=True)
@as_json
@click.pass_context
def import_(context: click.Context, format: str, workspace: str, files: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001
    """Read FILES (or folders of them) into a workspace; importing the same again changes nothing."""
    readings = FORMATS[format](files)  # before the workspace is made, so that a file that cannot be read makes none
    with _open(context, workspace, create=True) as ws:
        report = ws.ingest(readings)
    _print(report.to_dict() if as_json else visible(str(report)))


@cli.command()
@click.argument("workspace")
@click.argument("text")
@limit
@as_json
@click.pass_context
def search(context: click.Context, workspace: str, text: str, limit: int, as_json: bool) -> None:  # noqa: FBT001
    """Find the notes and facts whose words match TEXT, best first."""
    with _open(context, workspace) as ws:
        rows = ws.search(text, limit=limit).to_dict("records")
    if as_json:
        _print({"text": text, "hits": rows})
        return
    for row in rows:
        _print(visible(f"{row['score']:6.2f}  {row['id']}  {row['label']}  [{', '.join(row['terms'])}]"))
        _print(visible(f"        {row['source']}"))
    if not rows:
        _print("nothing matches")


@cli.command()
@click.argument("workspace")
@click.option("--after", default=0, show_default=True, type=click.IntRange(min=0), help="Start after this position.")
@limit
@as_json
@click.pass_context
def log(context: click.Context, workspace: str, after: int, limit: int, as_json: bool) -> None:  # noqa: FBT001
    """Print the events of the log, oldest first."""
    with _open(context, workspace) as ws:
        rows = ws.log(after=after, limit=limit).to_dict("records")
    if as_json:
        _print({"after": after, "events": rows})
        return
    for row in rows:
        _print(visible(f"{row['position']:6d}  {row['time']}  {row['type']:18}  {row['actor']:10}  {row['about']}"))


@cli.command()
@click.argument("workspace")
@as_json
@click.pass_context
def rebuild(context: click.Context, workspace: str, as_json: bool) -> None:  # noqa: FBT001
    """Replay the log into a fresh graph and swap it in."""
    with _open(context, workspace) as ws:
        position = ws.rebuild()
    _print({"position": position} if as_json else f"rebuilt the graph up to position {position}")


@cli.command()
@click.argument("workspace")
@click.argument("file", type=click.Path(dir_okay=False))
@as_json
@click.pass_context
def export(context: click.Context, workspace: str, file: str, as_json: bool) -> None:  # noqa: FBT001
    """Write a workspace's log to FILE as JSON lines."""
    with _open(context, workspace) as ws:
        count = ws.export(file)
    _print({"events": count, "file": file} if as_json else f"exported {count} events to {file}")


@cli.command()
@click.argument("workspace")
@click.argument("file", type=click.Path(dir_okay=False))
@as_json
@click.pass_context
def restore(context: click.Context, workspace: str, file: str, as_json: bool) -> None:  # noqa: FBT001
    """Make a new workspace from an exported FILE."""
    with cm.restore(file, workspace, **context.obj) as ws:
        position = ws.graph.position
    _print(
        {"workspace": workspace, "position": position} if as_json else f"restored {workspace} at position {position}"
    )


@cli.command()
@click.argument("workspace")
@as_json
@click.pass_context
def doctor(context: click.Context, workspace: str, as_json: bool) -> None:  # noqa: FBT001
    """Check server, log and graph, and remove what an interrupted rebuild left behind."""
    with _open(context, workspace) as ws:
        report = ws.doctor()
    if as_json:
        _print(report)
    else:
        for name, value in report.items():
            shown = ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, Mapping) else value
            _print(f"{name.replace('_', ' ')}: {', '.join(shown) or 'none' if isinstance(shown, list) else shown}")
    if not report["healthy"]:
        raise click.exceptions.Exit(FAILED)


def _piped() -> str:
    if sys.stdin is None:
        msg = "standard input is closed; expected the text of the note there"
        raise UsageError(msg)
    return sys.stdin.read()


def _print(value: Mapping[str, Any] | str) -> None:
    click.echo(visible(value) if isinstance(value, str) else json.dumps(value))


def main() -> None:
    """Run the command line: exit status 0 done, 1 the work failed, 2 wrong usage; an error is one line on stderr."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))  # so that the server is stopped too
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character must not end the work
    try:
        code = _run()
    except BrokenPipeError:  # the reader, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    except OSError as error:
        code = _complain(error, FAILED)
    sys.exit(code)


def _run() -> int:
    try:
        status = cli.main(prog_name="contextmesh", standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return WRONG
    except (click.UsageError, UsageError, InvalidNameError) as error:
        return _complain(error, WRONG)
    except (click.ClickException, ContextMeshError) as error:
        return _complain(error, FAILED)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    return status if isinstance(status, int) else DONE


def _complain(error: Exception, code: int) -> int:
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    click.echo(f"contextmesh: {visible(re.sub(r'[\r\n\t]+', ' ', message))}", err=True)
    return code

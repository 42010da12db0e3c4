"""Read times and durations as people write them in postmortems: partly, roughly, with or without a zone."""

import re
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

# Hours from UTC; for a standard time a place that keeps it and the name of that place's summer time.
# fmt: off
_ZONES: dict[str, tuple[int, str, str]] = {
    "UTC": (0, "", ""), "GMT": (0, "", ""),
    "CET": (1, "Europe/Copenhagen", "CEST"), "CEST": (2, "", ""),
    "EET": (2, "Europe/Helsinki", "EEST"), "EEST": (3, "", ""),
    "EST": (-5, "America/New_York", "EDT"), "EDT": (-4, "", ""),
    "PST": (-8, "America/Los_Angeles", "PDT"), "PDT": (-7, "", ""),
}
# fmt: on
_ZONE = r"(?:UTC|GMT)[+-][0-9]{1,2}(?::?[0-9]{2})?|UTC|GMT|CEST|CET|EEST|EET|EST|EDT|PST|PDT"
_ZONE_WORD = re.compile(rf"(?<![\w+-])({_ZONE})(?![\w+-])")
_ZONE_SENTENCE = re.compile(
    r"\(?\b(?i:(?:all\s+)?(?:the\s+)?(?:dates?\s+and\s+)?time(?:s|stamps?|\s*zone)?)\b[\w\s,:]{0,30}?"
    rf"(?<![\w+-])({_ZONE})(?![\w+-])(?i:\s+time(?:\s*zone)?)?[.)]*"
)
_CLOCK = r"(?:[0-9]{1,2}|HH|hh|\?\?|--|xx):(?:[0-9]{2}|mm|MM|\?\?|--|xx)(?::[0-9]{2})?(?:\s*[AaPp][Mm]\b)?"
_DATE = r"[0-9]{4}([-/.])[0-9]{1,2}\%d[0-9]{1,2}"
_TIME = re.compile(
    rf"(?P<date>{_DATE % 2})?(?:(?P<t>T)|[,\s]*)(?P<clock>{_CLOCK})?"
    rf"(?(t)|(?:\s*(?:-|–|—|\bto\b)\s*(?:(?P<end_date>{_DATE % 6})[,\s]+)?(?P<end>{_CLOCK}))?)"  # noqa: RUF001  ranges are written with any dash
    rf"\s*(?P<zone>{_ZONE}|Z|\+[0-9]{{2}}:?[0-9]{{2}}|(?(t)-[0-9]{{2}}:?[0-9]{{2}}|(?!)))?"
)
_ABOUT = re.compile(r"[~≈]|\b(?:ca|approx|approximately|about|around|circa)\b\.?", re.IGNORECASE)
_DURATION = re.compile(
    r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b"
)
_UNITS = {"w": 10080, "d": 1440, "h": 60, "m": 1, "s": 1 / 60}


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A time as far as it could be read.

    Attributes:
        time: The moment, with an offset where a zone is known; a part that is not known is zero.
        end: The end of a range.
        precision: `minute`, `hour` or `day`: the finest part that was read.
        approximate: Whether it was written as about this time.
        zone: The zone's name.
        note: What a reader has to know about the zone.
        problem: What could not be read, as the end of a sentence.
    """

    time: datetime | None = None
    end: datetime | None = None
    precision: str | None = None
    approximate: bool = False
    zone: str | None = None
    note: str = ""
    problem: str = ""


def read_time(written: str, zone: str | None, day: date | None) -> When:
    """Read a time such as `2020-10-06 09:00 - 11:00`, `~14:05`, `14:??` or `2019-12-03 --:--`.

    Args:
        written: The time as written.
        zone: The zone that holds where the time names none; None leaves the time without an offset.
        day: The date that holds where the time names none.

    Returns:
        The time; `problem` says what could not be read, if anything.
    """
    found = _TIME.fullmatch(" ".join(_ABOUT.sub(" ", written).split()))
    approximate = bool(_ABOUT.search(written))
    nothing = When(approximate=approximate, zone=zone, problem="could not be read; the row is kept without a time")
    if not found or not (found["date"] or found["clock"]):
        return nothing
    if not found["date"] and not day:
        return replace(nothing, problem="has no date, nor has a row before it; the row is kept without a time")
    zone = _zone_name(found["zone"]) or zone
    try:
        clock, precision = _clock(found["clock"])
        begin = datetime.combine(_date(found["date"]) or day or date.min, clock, _tzinfo(zone))
        until, problem = _until(found, begin)
    except (ValueError, OverflowError):
        return nothing
    when = When(time=begin, end=until, precision=precision, approximate=approximate, zone=zone, problem=problem)
    return replace(when, note=_zone_note(begin, zone))


def read_minutes(written: str) -> int | None:
    """Read a duration such as `19 hours 43 minutes.`, `2h` or `1.5 days` as whole minutes; None if it is none."""
    plain = re.sub(r",(?=[0-9]{3}\b)", "", _ABOUT.sub("", written)).strip(" .").lower()
    parts = _DURATION.findall(plain)
    if not parts or re.sub(r"[\s,]|\band\b", "", _DURATION.sub("", plain)):
        return None
    return round(sum(float(number) * _UNITS[unit[0]] for number, unit in parts))


def zone_in(words: str) -> str | None:
    """Find the zone that a table's head names, as in `Time (UTC)`."""
    found = _ZONE_WORD.search(words)
    return found[1] if found else None


def zone_stated(text: str) -> tuple[str | None, str]:
    """Find a sentence such as `All times in UTC.`; returns its zone and the text without the sentence."""
    found = _ZONE_SENTENCE.search(text)
    return (found[1], (text[: found.start()] + text[found.end() :]).strip()) if found else (None, text)


def _date(written: str | None) -> date | None:
    return date(*map(int, re.split(r"[-/.]", written))) if written else None


def _clock(written: str | None) -> tuple[time, str]:
    """Read `14:05`, `2:05 pm`, `14:??` (hour) or a placeholder such as `--:--` (day)."""
    found = re.match(r"([0-9]{1,2}):([0-9]{2})?(?::([0-9]{2}))?.*?([ap])?m?$", written or "", re.IGNORECASE)
    if not found:
        return time(), "day"
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    if found[4]:
        if not 1 <= hour <= 12:  # noqa: PLR2004  the hours of a twelve-hour clock
            raise ValueError(written)
        hour = hour % 12 + (12 if found[4].lower() == "p" else 0)
    return time(hour, minute, second), "minute" if found[2] else "hour"


def _until(found: re.Match[str], begin: datetime) -> tuple[datetime | None, str]:
    if not found["end"]:
        return None, ""
    clock, precision = _clock(found["end"])
    if precision != "minute":
        return None, "ends at a time that could not be read; the start of the range is kept"
    until = datetime.combine(_date(found["end_date"]) or begin.date(), clock, begin.tzinfo)
    return until + timedelta(days=until < begin and not found["end_date"]), ""


def _zone_name(written: str | None) -> str | None:
    if not written or written in _ZONES or written[0] not in "+-":
        return "UTC" if written == "Z" else written
    return f"UTC{written}"


def _tzinfo(zone: str | None) -> timezone | None:
    if not zone:
        return None
    found = re.fullmatch(r"(?:UTC|GMT)([+-])([0-9]{1,2}):?([0-9]{2})?", zone)
    if not found:
        return timezone(timedelta(hours=_ZONES[zone][0]))
    offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(-offset if found[1] == "-" else offset)


def _zone_note(moment: datetime, zone: str | None) -> str:
    _, place, summer = _ZONES.get(zone or "", (0, "", ""))
    if place and moment.replace(tzinfo=ZoneInfo(place)).dst():
        return f"{zone} as written; local clocks were on {summer} at that date"
    return ""

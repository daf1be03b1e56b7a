"""What a client sends that is no message: one line of it, and the next message is answered."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

pytest.importorskip("pygls")

from irtool.editor.streams import LONGEST_HEADER, LONGEST_MESSAGE, Incoming, Outgoing


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def message(method: str, number: int | None = None, **params: object) -> bytes:
    numbered = {"jsonrpc": "2.0", "method": method}
    more = {} if number is None else {"id": number}
    given = {"params": params} if params else {}
    return framed(json.dumps({**numbered, **more, **given}).encode())


BEGIN = message("initialize", 1, capabilities={}, processId=None, rootUri=None)
END = message("shutdown", 2) + message("exit")
DEEP = b"[" * 200_000 + b"]" * 200_000


def served(data: bytes) -> tuple[int, bytes, list[str]]:
    """Exit status, answers, and lines on standard error."""
    command = [sys.executable, "-m", "irtool", "lsp"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode().splitlines()


def bodies(answers: bytes) -> list[dict[str, object]]:
    return [json.loads(part.split(b"\r\n\r\n")[1]) for part in answers.split(b"Content-Length")[1:]]


def test_nothing_is_said_where_all_is_well() -> None:
    status, answers, lines = served(BEGIN + END)
    assert (status, lines) == (0, [])
    assert b'"id": 2' in answers


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (framed(b'{"jsonrpc":"2.0","id":7,"method":"x","params":' + DEEP + b"}"), "RecursionError"),
        (
            framed(b'{"jsonrpc":"2.0","method":"x","params":[' + b"9" * 6000 + b"]}"),
            "Exceeds the limit (4300",
        ),
        (framed(b'{"jsonrpc":"2.0","id":7,"method":"textDocument/hover"}'), "HoverRequest"),
        (framed(b"[1, 2]"), "AttributeError"),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}", "left out a message of 9999"),
    ],
    ids=["deep", "digits", "no parameters", "a list", "a length of digits"],
)
def test_what_is_no_message_is_one_line(sent: bytes, said: str) -> None:
    status, answers, lines = served(BEGIN + sent + END)
    assert status == 0
    assert len(lines) == 1
    assert said in lines[0]
    assert b'"id": 2' in answers


@pytest.mark.parametrize("number", [7, "seven"])
def test_a_request_with_other_parameters_is_answered_with_an_error(number: int | str) -> None:
    request = {"jsonrpc": "2.0", "id": number, "method": "textDocument/hover", "params": {"a": 1}}
    _, answers, lines = served(BEGIN + framed(json.dumps(request).encode()) + END)
    error = {"code": -32602, "message": "the parameters are not those of textDocument/hover"}
    assert {"id": number, "jsonrpc": "2.0", "error": error} in bodies(answers)
    assert len(lines) == 1


@pytest.mark.parametrize(
    "sent",
    [{"method": "textDocument/didOpen", "params": {}}, {"id": 7, "error": 3}, {"id": {"a": 1}}],
    ids=["a notification", "a response", "no number"],
)
def test_what_is_no_request_is_not_answered(sent: dict[str, object]) -> None:
    _, answers, _ = served(BEGIN + framed(json.dumps({"jsonrpc": "2.0", **sent}).encode()) + END)
    assert not any("error" in body for body in bodies(answers))


# -- headers -------------------------------------------------------------------------------------


def lines_of(data: bytes) -> tuple[list[bytes], list[str]]:
    """What is read line by line to the end, and what is complained of."""
    said: list[str] = []
    incoming = Incoming(io.BytesIO(data), said.append)
    return list(iter(incoming.readline, b"")), said


def header(size: int) -> bytes:
    return b"Content-Length: %d\r\n" % size


def test_a_message_of_a_gigabyte_is_taken_and_none_longer() -> None:
    assert lines_of(header(LONGEST_MESSAGE)) == ([header(LONGEST_MESSAGE)], [])
    (kept, said) = lines_of(header(LONGEST_MESSAGE + 1))
    assert kept == [b"\r\n"]
    assert str(LONGEST_MESSAGE + 1) in said[0]


@pytest.mark.parametrize("length", [1, LONGEST_HEADER, 3 * LONGEST_HEADER])
def test_the_header_behind_a_message_that_was_left_out_is_found(length: int) -> None:
    body = b"{" * length
    kept, said = lines_of(header(LONGEST_MESSAGE + 1) + b"\r\n" + body + header(5) + b"\r\n")
    assert kept == [b"\r\n", b"\r\n", header(5), b"\r\n"]
    assert len(said) == 1


@pytest.mark.parametrize("line", [b"Content-Type: text\r\n", b"Content-Length: x\r\n", b"\r\n"])
def test_other_headers_are_handed_on(line: bytes) -> None:
    assert lines_of(line) == ([line], [])


@pytest.mark.parametrize("line", [b"Content-Length: 5", b"x" * (2 * LONGEST_HEADER)])
def test_a_line_that_never_ends_is_the_end(line: bytes) -> None:
    assert lines_of(line) == ([], [])


def test_of_a_message_cut_short_there_is_as_much_as_came() -> None:
    assert Incoming(io.BytesIO(b"abc"), print).read(1 << 40) == b"abc"
    assert Incoming(io.BytesIO(b"abc"), print).read(2) == b"ab"


def test_what_the_protocol_closes_stays_open() -> None:
    stream = io.BytesIO()
    outgoing = Outgoing(stream)
    outgoing.write(b"abc")
    outgoing.close()
    assert stream.getvalue() == b"abc"

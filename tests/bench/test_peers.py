"""How other programs are asked, judged and drawn."""

from xml.etree import ElementTree as ET

from bench.peers.bar_chart import Bars, draw
from bench.peers.programs import PROGRAMS


def test_each_request_has_the_length_that_it_says() -> None:
    for program in PROGRAMS:
        head, _, body = program.request.bytes_of(7).partition(b"\r\n\r\n")

        assert b"Content-Length: %d\r\n" % len(body) in head + b"\r\n"


def test_an_answer_needs_its_status_and_its_field() -> None:
    request = PROGRAMS[0].request

    assert request.is_right(b"HTTP/1.1 202 Accepted", b'{"response_code":"202"}')
    assert not request.is_right(b"HTTP/1.1 200 OK", b'{"response_code":"202"}')
    assert not request.is_right(b"HTTP/1.1 202 Accepted", b'{"response_code":"400"}')


def test_a_chart_has_a_bar_for_each_value() -> None:
    chart = draw(["ours", "a & b"], [Bars("requests a second", [100, 50], "{:.0f}")])

    space = {"svg": "http://www.w3.org/2000/svg"}
    bars = ET.fromstring(chart).findall("svg:rect", space)  # noqa: S314 -- our own text
    assert [int(bar.attrib["width"]) for bar in bars] == [150, 75]

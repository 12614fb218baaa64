"""The quick look never passes over what the scan would speak of."""

from anima.gate.scan import hidden
from anima.gate.scan.letters import suspicious
from anima.text.unseen import may_hide


def test_no_character_that_the_scan_suspects_is_passed_over():
    every = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)

    assert [hex(ord(char)) for char in every if suspicious(char) and not may_hide(char)] == []


def test_what_is_passed_over_is_never_a_finding():
    texts = ["plain", "naïve café", "שלום", "می‌خواهم", "🐙 and 👩‍👩‍👧", "a\tb\r\nc", "日本語"]

    assert [text for text in texts if not may_hide(text) and hidden(text)] == []

"""The quick look never passes over what the scan would speak of."""

from anima.gate.scan import find_hidden
from anima.text import may_hide, visible


def test_one_hidden_character_of_any_sort_is_enough():
    hidden = (
        "\x00\x1b\x7f\x9b\u00ad\u034f\u200b\u200d\u200e\u202e\u2028\u2060\u2066\u3164\ufe0f\ufeff\U000e0041\U000e0101"
    )

    assert [hex(ord(char)) for char in hidden if not may_hide(f"a{char}b")] == []
    assert may_hide("a\ud800b")


def test_what_is_passed_over_is_never_a_finding():
    texts = ["plain", "naïve café", "שלום", "می‌خواهم", "🐙 and 👩‍👩‍👧", "a\tb\r\nc", "日本語"]

    assert [text for text in texts if not may_hide(text) and find_hidden(text)] == []


def test_a_visible_text_hides_nothing_and_is_one_line():
    assert visible("a\u200bb\nc\x1b[2J") == "a⟨U+200B⟩b⏎c⟨U+001B⟩[2J"
    assert not may_hide(visible("\U000e0041\u202e\u2028"))

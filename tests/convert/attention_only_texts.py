"""Texts of many kinds: languages, code, emoji, numbers, nothing at all, and more tokens than a model takes."""

from __future__ import annotations

SENTENCES = [
    "",
    " ",
    "a",
    "The quick brown fox jumps over the lazy dog.",
    "Attention is all you need, and nothing else.",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "Le renard brun saute par-dessus le chien paresseux, n'est-ce pas ?",
    "El veloz zorro marrón salta sobre el perro perezoso.",
    "Быстрая коричневая лиса перепрыгивает через ленивую собаку.",
    "素早い茶色の狐はのろまな犬を飛び越える。",
    "敏捷的棕色狐狸跳过了懒狗。",
    "الثعلب البني السريع يقفز فوق الكلب الكسول",
    "השועל החום המהיר קופץ מעל הכלב העצלן",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है।",
    "빠른 갈색 여우가 게으른 개를 뛰어넘는다.",
    "Γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί.",
    "🦊🐶🚀🎉 👩‍👩‍👧‍👦 🏳️‍🌈",
    "def f(x):\n    return [y ** 2 for y in x if y % 2 == 0]",
    "SELECT name, COUNT(*) FROM users WHERE age > 30 GROUP BY name;",
    "for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }",
    "<html><body><p class=\"x\">&nbsp;</p></body></html>",
    "3.14159 2.71828 1.41421 0x7fffffff 1e-300 -inf NaN",
    "!!!???...,,,;;;:::---___",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "buffalo " * 700,
    "The results of the experiment were, in short, inconclusive. " * 60,
]  # fmt: skip

SUBJECTS = [
    "The committee",
    "A cat",
    "Nobody",
    "Die Regierung",
    "Mon voisin",
    "Rust's borrow checker",
    "Photosynthesis",
]
VERBS = ["rejected", "explains", "never liked", "computes", "sleeps on", "verbessert", "a oublié", "approximates"]
OBJECTS = ["the proposal.", "a warm keyboard!", "∫ f(x) dx?", "quantum mechanics", "les fenêtres", "42 sheep 🐑"]


def few() -> list[str]:
    return SENTENCES


def many() -> list[str]:
    """A few hundred."""
    made = [f"{one} {two} {three}" for one in SUBJECTS for two in VERBS for three in OBJECTS]
    return [*SENTENCES, *made]

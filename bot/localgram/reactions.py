"""The reactions there are: ReactionTypeEmoji of the Bot API 10.0."""

REACTIONS = (
    "❤", "👍", "👎", "🔥", "🥰", "👏", "😁", "🤔", "🤯", "😱", "🤬", "😢",
    "🎉", "🤩", "🤮", "💩", "🙏", "👌", "🕊", "🤡", "🥱", "🥴", "😍", "🐳",
    "\u2764\ufe0f\u200d\U0001f525", "🌚", "🌭", "💯", "🤣", "⚡", "🍌", "🏆", "💔", "🤨", "😐", "🍓",
    "🍾", "💋", "🖕", "😈", "😴", "😭", "🤓", "👻", "\U0001f468\u200d\U0001f4bb", "👀", "🎃", "🙈",
    "😇", "😨", "🤝", "✍", "🤗", "🫡", "🎅", "🎄", "☃", "💅", "🤪", "🗿",
    "🆒", "💘", "🙉", "🦄", "😘", "💊", "🙊", "😎", "👾", "\U0001f937\u200d\u2642\ufe0f", "🤷", "\U0001f937\u200d\u2640\ufe0f",
    "😡",
)  # fmt: skip

# As Telegram writes them, by what is left of them without variation selectors.
CANONICAL = {emoji.replace("\ufe0f", ""): emoji for emoji in REACTIONS}

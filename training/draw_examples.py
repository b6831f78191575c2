"""Writes the example inputs that ship with the built-in models: sentences of our own, and three small drawings.

python training/draw_examples.py --to src/headscope/builtin
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

DRAWN, SAVED = 512, 64  # drawn large and made smaller, so that edges are smooth as in a photograph

EXAMPLES = {
    "licence": "CC0 1.0: written and drawn for this project",
    "gpt": [
        {"name": "pronoun: nurse or doctor", "text": "The doctor asked the nurse a question. She",
         "look_for": "where the last token looks: doctor, nurse, or the start token"},
        {"name": "pronoun: doctor or nurse", "text": "The doctor asked the nurse a question. He",
         "look_for": "what changes against the same sentence with She"},
        {"name": "pronoun: farmer or housekeeper",
         "text": "The farmer asked the housekeeper for the key because he wanted to open the barn.",
         "look_for": "heads in which he looks at farmer"},
        {"name": "pronoun: housekeeper or farmer",
         "text": "The farmer thanked the housekeeper because she had found the key to the barn.",
         "look_for": "heads in which she looks at housekeeper"},
        {"name": "repeated pattern",
         "text": "red stone, blue river, green hill, old gate. red stone, blue river, green hill, old gate.",
         "look_for": "induction heads: in the second half, attention to the word after the earlier copy"},
        {"name": "repeated name",
         "text": "Mr. Thackerby opened the door. The wind was cold, and the street was dark. Mr. Thackerby",
         "look_for": "pieces of a name the model never saw, copied from the first time"},
        {"name": "story", "text": "Once upon a time there was a miller who had three sons",
         "look_for": "previous-token heads"},
    ],
    "bert": [
        {"name": "sentence pair: paraphrase", "text": "The boy bought a new bicycle yesterday.",
         "pair": "Yesterday the boy bought a new bike.", "same_meaning": True,
         "look_for": "heads in which a word of A looks at the same word of B, and bicycle at bike"},
        {"name": "sentence pair: one word differs", "text": "The boy bought a new bicycle yesterday.",
         "pair": "The boy sold a new bicycle yesterday.", "same_meaning": False,
         "look_for": "where bought looks when its place is taken by sold"},
        {"name": "sentence pair: pronoun", "text": "The farmer asked the housekeeper for the key.",
         "pair": "She gave it to him.", "look_for": "she, it and him across the border"},
        {"name": "masked word", "text": "The doctor asked the [MASK] a question.",
         "look_for": "what the masked place reads"},
    ],
    "translate": [
        {"name": "plain", "text": "The doctor asked the nurse a question.",
         "look_for": "cross-attention that runs along the diagonal"},
        {"name": "names and numbers", "text": "Tom bought 25 apples in Boston.",
         "look_for": "digits and names aligned with their translations"},
        {"name": "other word order", "text": "I do not know where my keys are.",
         "look_for": "crossing lines: Russian may put the verb elsewhere"},
        {"name": "pronouns", "text": "The farmer asked the housekeeper for the key.",
         "look_for": "endings that need a look at the gender of the noun"},
    ],
    "vit": [
        {"name": "sailing boat", "image": "images/sailing_boat.png", "class": "ship"},
        {"name": "aeroplane", "image": "images/aeroplane.png", "class": "airplane"},
        {"name": "lorry", "image": "images/lorry.png", "class": "truck"},
    ],
}  # fmt: skip


def backdrop(top: tuple[int, int, int], bottom: tuple[int, int, int], horizon: float) -> Image.Image:
    """A sky that pales towards the horizon, and ground or water below it."""
    image = Image.new("RGB", (DRAWN, DRAWN), bottom)
    draw = ImageDraw.Draw(image)
    line = int(horizon * DRAWN)
    for row in range(line):
        pale = 0.5 * row / max(1, line)
        draw.line([(0, row), (DRAWN, row)], fill=tuple(int(c + (255 - c) * pale) for c in top))
    for row in range(line, DRAWN):
        shade = 1.0 - 0.3 * (row - line) / max(1, DRAWN - line) + 0.04 * ((row // 9) % 3 - 1)
        draw.line([(0, row), (DRAWN, row)], fill=tuple(min(255, int(c * shade)) for c in bottom))
    return image


def sailing_boat() -> Image.Image:
    image = backdrop((96, 150, 214), (44, 92, 138), 0.62)
    draw = ImageDraw.Draw(image)
    draw.polygon([(88, 330), (430, 330), (380, 396), (140, 396)], fill=(122, 62, 36))
    draw.polygon([(88, 330), (430, 330), (422, 344), (96, 344)], fill=(236, 232, 224))
    draw.rectangle([250, 60, 260, 332], fill=(70, 46, 30))
    draw.polygon([(268, 72), (268, 308), (410, 308)], fill=(246, 244, 238))
    draw.polygon([(242, 96), (242, 308), (128, 308)], fill=(222, 220, 214))
    draw.polygon([(260, 60), (260, 84), (300, 72)], fill=(196, 40, 40))
    for left, row in ((30, 420), (300, 440), (160, 468), (400, 412)):
        draw.line([(left, row), (left + 80, row)], fill=(120, 164, 200), width=5)
    return image


def aeroplane() -> Image.Image:
    image = backdrop((70, 132, 210), (150, 190, 230), 1.0)
    draw = ImageDraw.Draw(image)
    for left, top, wide in ((20, 360, 170), (330, 410, 150), (360, 60, 120)):
        draw.ellipse([left, top, left + wide, top + wide // 3], fill=(236, 242, 248))
    draw.polygon([(222, 262), (316, 262), (182, 432), (136, 432)], fill=(150, 156, 166))
    draw.ellipse([56, 214, 470, 292], fill=(232, 234, 238))
    draw.polygon([(60, 250), (30, 128), (78, 128), (138, 226)], fill=(40, 78, 150))
    draw.polygon([(234, 232), (316, 232), (226, 112), (186, 112)], fill=(176, 182, 192))
    draw.polygon([(76, 252), (136, 252), (64, 310), (34, 310)], fill=(150, 156, 166))
    for left in range(170, 400, 26):
        draw.ellipse([left, 238, left + 12, 250], fill=(64, 76, 96))
    draw.polygon([(426, 232), (456, 246), (420, 250)], fill=(40, 52, 72))
    return image


def lorry() -> Image.Image:
    image = backdrop((176, 196, 214), (108, 106, 104), 0.66)
    draw = ImageDraw.Draw(image)
    draw.rectangle([0, 300, DRAWN, 340], fill=(96, 124, 80))
    draw.rectangle([40, 130, 318, 366], fill=(228, 228, 222))
    draw.rectangle([40, 130, 318, 152], fill=(178, 178, 172))
    draw.polygon([(326, 196), (420, 196), (466, 276), (466, 366), (326, 366)], fill=(188, 40, 34))
    draw.polygon([(346, 214), (410, 214), (442, 276), (346, 276)], fill=(150, 190, 212))
    draw.rectangle([30, 362, 474, 388], fill=(48, 48, 52))
    for left in (72, 150, 366):
        draw.ellipse([left, 344, left + 82, 426], fill=(28, 28, 30))
        draw.ellipse([left + 24, 368, left + 58, 402], fill=(150, 150, 152))
    draw.rectangle([448, 316, 470, 334], fill=(250, 232, 150))
    return image


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--to", type=Path, default=Path("src/headscope/builtin"))
    folder = arguments.parse_args().to
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for name, picture in (("sailing_boat", sailing_boat()), ("aeroplane", aeroplane()), ("lorry", lorry())):
        small = picture.filter(ImageFilter.GaussianBlur(3)).resize((SAVED, SAVED), Image.Resampling.BOX)
        small.save(folder / "images" / f"{name}.png", optimize=True)
    text = json.dumps(EXAMPLES, indent=1, ensure_ascii=False) + "\n"
    (folder / "examples.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

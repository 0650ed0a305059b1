#!/usr/bin/env python3
"""Records what transformers makes of chat templates, for check_text.

usage: make_chats.py FOLDER

Reads FOLDER/templates/*.jinja and writes FOLDER/chats.jsonl. The templates have the formats and use the features of
those of Llama 2 and 3, Qwen 2 and 3, Mistral and Gemma. Needs the package transformers.
"""

import itertools
import json
import pathlib
import sys

import jinja2
from transformers.utils.chat_template_utils import render_jinja_template

CHATS = [
    [{"role": "user", "content": "Hello"}],
    [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "What is 1+1? \u00fc\U0001f600"}],
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb "},
        {"role": "user", "content": "  c\n"},
    ],
    [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1, "y": [None, "z"]}}}],
        },
        {"role": "ipython", "content": "r"},
    ],
    [{"role": "assistant", "content": "first"}],
    [{"role": "user", "content": [{"type": "text", "text": " part "}, {"type": "image"}]}],
]


def main():
    folder = pathlib.Path(sys.argv[1])
    templates = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("templates/*.jinja"))}
    cases = []
    for (name, template), chat, generate in itertools.product(templates.items(), CHATS, (True, False)):
        variables = {
            "messages": chat,
            "add_generation_prompt": generate,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "tools": None,
            "documents": None,
        }
        if name == "qwen3" and generate:
            variables["enable_thinking"] = False
        case = {"template": template, "variables": variables}
        rest = {
            key: value
            for key, value in variables.items()
            if key not in ("messages", "tools", "documents", "add_generation_prompt")
        }
        try:
            rendered, _ = render_jinja_template(
                conversations=[chat], chat_template=template, add_generation_prompt=generate, **rest
            )
            case["text"] = rendered[0]
        except jinja2.exceptions.UndefinedError:
            case["error"] = ""
        except jinja2.exceptions.TemplateError as error:
            case["error"] = str(error)
        except TypeError:
            case["error"] = ""
        cases.append(case)
    with open(folder / "chats.jsonl", "w", encoding="utf-8") as file:
        for case in cases:
            file.write(json.dumps(case, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(len(cases), "cases,", sum("error" in case for case in cases), "of them errors")


if __name__ == "__main__":
    main()

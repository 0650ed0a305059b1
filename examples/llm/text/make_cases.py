#!/usr/bin/env python3
"""Records what the packages tokenizers and sentencepiece answer, for check_text.

usage: make_cases.py FOLDER [--texts N] [--seed N] [--small]

Trains a small tokenizer with the settings of each family on generated texts in 20 scripts, and writes cases.jsonl and
SentencePiece models to FOLDER. --small: smaller vocabularies and normalization maps, for the recorded sample.
Needs the packages tokenizers and sentencepiece.
"""

import argparse
import json
import pathlib
import random
import unicodedata

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SCRIPTS = {
    "latin": [(0x41, 0x5A), (0x61, 0x7A), (0x61, 0x7A), (0xC0, 0x24F)],
    "greek": [(0x391, 0x3C9), (0x1F00, 0x1FFE)],
    "cyrillic": [(0x410, 0x44F), (0x400, 0x4FF)],
    "armenian": [(0x531, 0x587)],
    "hebrew": [(0x5D0, 0x5EA), (0x5B0, 0x5C2)],
    "arabic": [(0x620, 0x64A), (0x64B, 0x652), (0x660, 0x669)],
    "devanagari": [(0x900, 0x97F)],
    "bengali": [(0x980, 0x9FE)],
    "tamil": [(0xB80, 0xBFA)],
    "telugu": [(0xC00, 0xC7F)],
    "thai": [(0xE01, 0xE5B)],
    "lao": [(0xE81, 0xEDF)],
    "tibetan": [(0xF00, 0xFDA)],
    "georgian": [(0x10A0, 0x10FF)],
    "hangul": [(0xAC00, 0xD7A3), (0x1100, 0x11FF)],
    "ethiopic": [(0x1200, 0x139F)],
    "khmer": [(0x1780, 0x17F9)],
    "kana": [(0x3041, 0x30FF), (0xFF66, 0xFF9D)],
    "han": [(0x4E00, 0x9FFF), (0x20000, 0x2A6DF)],
    "gothic": [(0x10330, 0x1034A)],
}
SPACES = [" "] * 12 + [
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    " \n",
    "\u00a0",
    "\u3000",
    "\u2003",
    "\u0085",
    "\u200b",
    "",
]
MARKS = [
    ".",
    ",",
    "!",
    "?",
    "...",
    "'s",
    "'LL",
    "'t",
    "\u2019re",
    "-",
    "_",
    "/",
    "(",
    ")",
    '"',
    "#",
    "@",
    "\u3002",
    "\u00bf",
    "\u20ac",
    "+",
    "=",
    "<",
    ">",
    "|",
    "\u2581",
    "\ufffd",
    "\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea",
    "e\u0301",
    "\ufb01",
    "\u2460",
    "\u00bd",
    "\u0130",
    "\u017f",
    "\u1e9e",
    "\uff21",
    "\u212b",
    "\x00",
    "\x07",
]
DIGITS = [
    "0",
    "7",
    "42",
    "123",
    "1234",
    "2026",
    "3.14",
    "1,000,000",
    "\u0664\u0665",
    "\u0967\u0968",
    "\u00b2",
    "\u2167",
]
ENGLISH = (
    "the of and to in is that it was for on are with as his they be at one have this from Hello World model".split()
)
SPECIAL = ["<|begin|>", "<|end|>", "<s>", "</s>", "<mask>", "<tool>", "word", "CamelCase", "<unk>"]
PRE_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
PRE_QWEN = PRE_LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
PRE_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def letters(ranges):
    """The assigned code points of a script. The tables of the package tokenizers are those of Unicode 9 to 11, so that
    later ones (U+09FD, U+09FE, U+0C3C, U+0C77, U+0EBA) are ordered and classified otherwise there."""
    return [
        chr(code)
        for first, last in ranges
        for code in range(first, last + 1)
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co") and code not in (0x9FD, 0x9FE, 0xC3C, 0xC77, 0xEBA)
    ]


LETTERS = {name: letters(ranges) for name, ranges in SCRIPTS.items()}


def word(rng, script):
    if script == "latin" and rng.random() < 0.6:
        return rng.choice(ENGLISH)
    return "".join(rng.choice(LETTERS[script]) for _ in range(rng.randint(1, 8)))


def text(rng, script, special):
    parts = []
    for _ in range(rng.choice([0, 1, 2, 5, 12, 12, 12, 30])):
        kind = rng.random()
        if special and kind < 0.08:
            parts.append(rng.choice(SPECIAL))
        elif kind < 0.2:
            parts.append(rng.choice(MARKS))
        elif kind < 0.3:
            parts.append(rng.choice(DIGITS))
        else:
            parts.append(word(rng, script if rng.random() < 0.8 else rng.choice(list(SCRIPTS))))
        parts.append(rng.choice(SPACES))
    return "".join(parts)


def special_tokens(normalized=False):
    return [
        AddedToken("<|begin|>", special=True, normalized=normalized),
        AddedToken("<|end|>", special=True, normalized=normalized),
        AddedToken("<s>", special=True, normalized=normalized),
        AddedToken("</s>", special=True, normalized=normalized),
    ]


def other_tokens():
    return [
        AddedToken("<mask>", lstrip=True, normalized=False),
        AddedToken("<tool>", rstrip=True, normalized=True),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("CamelCase", normalized=True),
    ]


def begin(tokenizer, name="<s>"):
    return processors.TemplateProcessing(
        single=f"{name}:0 $A:0",
        pair=f"{name}:0 $A:0 {name}:1 $B:1",
        special_tokens=[(name, tokenizer.token_to_id(name))],
    )


def byte_level(corpus, size, split, normalizer=None, ignore_merges=False, prefix=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    parts = [pre_tokenizers.Split(Regex(split), "isolated")] if split else []
    parts.append(pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not split))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts) if split else parts[0]
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=special_tokens(),
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_tokens(other_tokens())
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), begin(tokenizer, "<|begin|>")]
    )
    return tokenizer


def fallback(corpus, size, normalizer, pre_tokenizer, decoder, train_with):
    """BPE over characters, with a token for each byte: trained, then built again with the bytes."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = normalizer or normalizers.Replace(" ", "\u2581")
    trained.pre_tokenizer = train_with
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False, limit_alphabet=size // 3
    )
    trained.train_from_iterator(corpus, trainer)
    model = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    vocab = {token: i for i, token in enumerate(tokens)}
    for token in sorted(model["vocab"], key=model["vocab"].get):
        vocab.setdefault(token, len(vocab))
    tokenizer = Tokenizer(
        models.BPE(vocab, [tuple(m) for m in model["merges"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens(special_tokens())
    tokenizer.add_tokens(other_tokens())
    tokenizer.post_processor = begin(tokenizer)
    return tokenizer


def metaspace_decoder(strip):
    parts = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(parts + ([decoders.Strip(" ", 1, 0)] if strip else []))


def sentencepiece_model(folder, name, corpus, size, **options):
    # Half of the letters of each script, so that all characters have room in the vocabulary.
    known = {letter for all_letters in LETTERS.values() for letter in all_letters[: size // 50]} | {" "}
    (folder / "corpus.txt").write_text(
        "\n".join("".join(c for c in line if c in known) for line in corpus), encoding="utf-8"
    )
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"),
        model_prefix=str(folder / name),
        vocab_size=size,
        character_coverage=0.98,
        byte_fallback=True,
        minloglevel=2,
        hard_vocab_limit=False,
        num_threads=1,
        user_defined_symbols=["<tool>"],
        control_symbols=["<|begin|>", "<|end|>"],
        **options,
    )
    (folder / "corpus.txt").unlink()
    (folder / f"{name}.vocab").unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.model"))


def unigram(folder, corpus, size, processor_options, byte_fallback):
    """Unigram with SentencePiece's own map of characters."""
    processor = sentencepiece_model(folder, "scratch", corpus, size, model_type="unigram", **processor_options)
    # The map: field 3 (normalizer_spec) of the model, and field 2 in it.
    charsmap = fields(fields((folder / "scratch.model").read_bytes())[3][-1]).get(2, [b""])[-1]
    (folder / "scratch.model").unlink()
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=processor.unk_id(), byte_fallback=byte_fallback))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.add_special_tokens(special_tokens())
    tokenizer.add_tokens(other_tokens())
    tokenizer.post_processor = begin(tokenizer)
    return tokenizer


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """The length-delimited fields of a protocol buffer, by number."""
    result, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 2:
            size, at = varint(data, at)
            result.setdefault(tag >> 3, []).append(data[at : at + size])
            at += size
        elif tag & 7 == 5:
            at += 4
        else:
            _, at = varint(data, at)
    return result


def odd(corpus, size):
    """The remaining components together."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.Whitespace(),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>"],
        show_progress=False,
        limit_alphabet=size // 2,
        continuing_subword_prefix="##",
        end_of_word_suffix="</w>",
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens(special_tokens(normalized=True))
    tokenizer.add_tokens(other_tokens())
    return tokenizer


def families(folder, corpus, size, small):
    """Name and tokenizer of each family."""
    yield "llama3", byte_level(corpus, size, PRE_LLAMA3, ignore_merges=True)
    yield "qwen", byte_level(corpus, size, PRE_QWEN, normalizers.NFC())
    yield "o200k", byte_level(corpus, size, PRE_O200K)
    yield "gpt2", byte_level(corpus, size, None, prefix=True)
    spaced = pre_tokenizers.Split("\u2581", "merged_with_next")
    llama2 = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    yield "llama2", fallback(corpus, size, llama2, None, metaspace_decoder(True), spaced)
    first = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first", split=False)
    yield "mistral", fallback(corpus, size, None, first, metaspace_decoder(True), spaced)
    yield "gemma", fallback(
        corpus,
        size,
        normalizers.Replace(" ", "\u2581"),
        pre_tokenizers.Split(" ", "merged_with_previous"),
        metaspace_decoder(False),
        spaced,
    )
    deepseek = byte_level(corpus, size, PRE_LLAMA3)
    deepseek.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("[\r\n]"), "isolated"),
            pre_tokenizers.Split(Regex(r"\s?\p{L}+"), "isolated"),
            pre_tokenizers.Split(Regex(r"\s?\p{P}+"), "isolated"),
            pre_tokenizers.Split(Regex("[\u4e00-\u9fa5\u0800-\u4e00]+"), "isolated"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Split(Regex("q+"), "removed", invert=False),
            pre_tokenizers.Split(" ", "contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    yield "deepseek", deepseek
    if small:
        rules = folder / "rules.tsv"
        rules.write_text(
            "41\t61\n42\t62\nFB01\t66 69\n2460\t31\nE9\t65 301\n41 301\te1\nA0\t20\n3000\t20\n", encoding="utf-8"
        )
        options = {"normalization_rule_tsv": str(rules)}
    else:
        options = {"normalization_rule_name": "nmt_nfkc"}
    yield "t5", unigram(folder, corpus, size, options, False)
    yield "unigram with bytes", unigram(folder, corpus, size, options, True)
    if small:
        rules.unlink()
    yield "odd", odd(corpus, size)


def record(tokenizer, sample):
    special = tokenizer.encode(sample).ids
    return {
        "text": sample,
        "ids": tokenizer.encode(sample, add_special_tokens=False).ids,
        "special": special,
        "decoded": tokenizer.decode(special, skip_special_tokens=False),
        "skipped": tokenizer.decode(special),
    }


def record_sentencepiece(processor, sample):
    ids = processor.encode(sample)
    special = [processor.bos_id()] + ids
    decoded = processor.decode(ids)
    return {"text": sample, "ids": ids, "special": special, "decoded": "<s>" + decoded, "skipped": decoded}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--texts", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(options.seed)
    names = list(SCRIPTS)
    corpus = [
        " ".join(word(rng, names[i % 20] if rng.random() < 0.5 else "latin") for _ in range(20)) for i in range(2000)
    ]
    size = 500 if options.small else 3000
    texts = [text(rng, names[i % 20], True) for i in range(options.texts)]
    plain = [text(rng, names[i % 20], False) for i in range(options.texts)]
    with open(folder / "cases.jsonl", "w", encoding="utf-8") as file:

        def write(entry):
            file.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")

        for name, tokenizer in families(folder, corpus, size, options.small):
            write({"name": name, "tokenizer": json.loads(tokenizer.to_str())})
            for sample in texts:
                write(record(tokenizer, sample))
        for kind in "bpe", "unigram":
            processor = sentencepiece_model(
                folder,
                f"{kind}",
                corpus,
                size,
                model_type=kind,
                normalization_rule_name="identity" if options.small else "nmt_nfkc",
            )
            (folder / f"{kind}.model").rename(folder / f"{kind}.bin")
            write({"name": f"sentencepiece {kind}", "model": f"{kind}.bin"})
            for sample in plain:
                write(record_sentencepiece(processor, sample))
    print(f"tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}")


if __name__ == "__main__":
    main()

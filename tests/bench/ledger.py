"""The ledger of a start: what it costs in counts that do not depend on how busy the machine is."""

COLUMNS = (("calls", "calls"), ("instructions", "instructions"), ("faults", "faults"), ("made", "made"),
           ("deleted", "deleted"), ("bytes", "bytes"), ("grace_periods", "graces"), ("peak_kb", "peak kB"))
GOALS = (("calls", "system calls in all", 600), ("peak_kb", "memory at its peak, in kB", 4096))


def number_images(found):
    """By name and number of that name: processes start beside each other, so that their order may differ."""
    seen = {}
    for image in found:
        seen[image["name"]] = seen.get(image["name"], 0) + 1
        yield (image["name"], seen[image["name"]]), image


def merge(images):
    """One row a program image: its calls from the last run, its instructions from the others; None: not counted."""
    stepped = images[:-1]
    is_whole = stepped and all(None not in found for found in stepped)
    rows = dict(number_images(images[-1]))
    for row in rows.values():
        row["instructions"] = 0 if is_whole else None
    for found in stepped if is_whole else ():
        for key, image in number_images(found):
            if key in rows:
                rows[key]["instructions"] += image["instructions"]
    return list(rows.values())


def total(rows):
    values = {key: [row[key] for row in rows] for key, _ in COLUMNS}
    return {key: None if None in found else max(found) if key == "peak_kb" else sum(found)
            for key, found in values.items()}


def print_row(text, row):
    cells = {key: "-" if row[key] is None else row[key] if isinstance(row[key], str) else f"{row[key]:,}"
             for key, _ in COLUMNS}
    print(f"  {text:24}" + "".join(f"{cells[key]:>{14 if key == 'instructions' else 9}}" for key, _ in COLUMNS))


def show(title, show_goal, found, who, texts):
    """The ledgers of the commands that were counted as this user; the images of bawn's in detail."""
    ledgers = {name: found.get(f"ledger-{name}-{who}") for name in texts}
    if not ledgers["bawn"]:
        return
    title(f"The ledger of a start as {who}")
    print_row("process: program", dict(COLUMNS))
    rows = merge(ledgers["bawn"]["images"])
    for row in rows:
        print_row(f"{row['process']}: {row['name']}", row)
    for name, text in texts.items():
        if ledgers[name]:
            merged = merge(ledgers[name]["images"])
            processes = len({row["process"] for row in merged})
            print_row(f"{text.split(' …')[0]}: {processes}", total(merged))
    for key, text, goal in GOALS:
        show_goal(text, total(rows)[key], goal)
    show_goal("files left by a run", ledgers["bawn"]["left_files"], 3)
    show_goal("bytes left by a run", ledgers["bawn"]["left_bytes"], 6000)

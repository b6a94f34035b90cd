"""Judges an event of OCSF by what is written down in ocsf_facts.json of release 1.8.0.

No package has the schema, so these facts were taken from it: for the classes and objects that bawn writes the names
of the attributes, which of them are required, what is in them, and the numbers that enumerations know. An attribute
is "KIND[]@PROFILE": a list if it has brackets, and there only if the event names the profile. `other` is an object
that bawn does not write, except for `unmapped`, which is anything.
"""

import ipaddress
import json
import pathlib

FACTS = json.loads((pathlib.Path(__file__).resolve().parent / "ocsf_facts.json").read_text(encoding="utf-8"))
COMPUTED = ("class_uid", "category_uid", "type_uid")


def is_ip(value):
    try:
        return isinstance(value, str) and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)


KINDS = {
    "text": lambda value: isinstance(value, str),
    "number": is_number,
    "bool": lambda value: isinstance(value, bool),
    "ip": is_ip,
    "port": lambda value: is_number(value) and 0 <= value <= 65535,
    "object": lambda value: isinstance(value, dict),
    "any": lambda value: True,
}


def facts_of(class_uid):
    """Those of every class, and its own."""
    base, own = FACTS["classes"]["0"], FACTS["classes"][str(class_uid)]
    return {"required": base["required"] + own.get("required", []),
            "attributes": {**base["attributes"], **own.get("attributes", {})},
            "enums": {**base["enums"], **own.get("enums", {})},
            "at_least_one": own.get("at_least_one", [])}


def judge_map(where, facts, value, profiles):
    problems = [f"{where} has no {key}" for key in facts.get("required", []) if key not in value]
    if facts.get("at_least_one") and not any(key in value for key in facts["at_least_one"]):
        problems.append(f"{where} has none of {facts['at_least_one']}")
    for key, inner in value.items():
        kind, _, profile = facts["attributes"].get(key, "").partition("@")
        if not kind or (profile and profile not in profiles):
            problems.append(f"{where} may have no {key}")
            continue
        is_list = kind.endswith("[]")
        if is_list != isinstance(inner, list):
            problems.append(f"{where}.{key} is {'not ' if is_list else ''}a list")
            continue
        for item in inner if is_list else [inner]:
            problems += judge_value(f"{where}.{key}", kind.removesuffix("[]"), item, profiles)
        known = facts.get("enums", {}).get(key)
        if known and inner not in known:
            problems.append(f"{where}.{key} cannot be {inner}")
    return problems


def judge_value(where, kind, value, profiles):
    if where == "event.unmapped":
        return [] if isinstance(value, dict) else [f"{where} is not an object"]
    if kind in FACTS["objects"] and isinstance(value, dict):
        return judge_map(where, FACTS["objects"][kind], value, profiles)
    if kind in KINDS and KINDS[kind](value):
        return []
    return [f"{where} is not a {kind}: {value!r}"]


def judge(event):
    """What is wrong with it, a sentence each."""
    if str(event.get("class_uid")) not in FACTS["classes"]:
        return [f"there is no class {event.get('class_uid')} here"]
    metadata = event.get("metadata")
    profiles = metadata.get("profiles", []) if isinstance(metadata, dict) else []
    problems = judge_map("event", facts_of(event["class_uid"]), event, profiles)
    if event.get("category_uid") != event["class_uid"] // 1000:
        problems.append("the category is not that of the class")
    if event.get("type_uid") != event["class_uid"] * 100 + event.get("activity_id", 0):
        problems.append("the type is not that of class and activity")
    if not problems and metadata["version"] != FACTS["version"]:
        problems.append(f"it is of version {metadata['version']}")
    return problems

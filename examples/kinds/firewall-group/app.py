"""A security group of the cluster firewall (facts C12, P9), in Python.

A list of rules below the object, addressed by position. PVE gives one digest for the whole file and takes it
with every write, so the host reads and asks again after each call.
"""

import json
import re

from componentize_py_types import Err
from wit_world.imports import types as t

KIND = "FirewallGroup"
VERSION = "0.1.0"
GROUPS = "/cluster/firewall/groups"

# field of a rule: key in PVE
RULE = {
    "type": "type", "action": "action", "enabled": "enable", "source": "source", "dest": "dest",
    "proto": "proto", "dport": "dport", "sport": "sport", "macro": "macro", "comment": "comment",
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,17}")
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,19}")
MARKER = re.compile(r"(?:^|\s)proxops:\S+:\S+/\S+\s*$")


def text(description, **more):
    return {"type": "string", "description": description, **more}


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["group"],
    "properties": {
        "group": text("Name in PVE: a letter, then letters, digits, _ and -; 2 to 18.", pattern=NAME.pattern,
                      **{"x-pve-key": "group"}),
        "comment": text("What it is for; one line.", default="", **{"x-pve-key": "comment"}),
        "rules": {
            "type": "array",
            "description": "The rules in their order. No other rule stays in the group.",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["type", "action"],
                "properties": {
                    "type": text("Direction.", enum=["in", "out", "forward"], **{"x-pve-key": "type"}),
                    "action": text("What happens.", enum=["ACCEPT", "DROP", "REJECT"], **{"x-pve-key": "action"}),
                    "enabled": {"type": "boolean", "description": "Whether it counts.", "default": True,
                                "x-pve-key": "enable"},
                    "source": text("Addresses that packets come from.", **{"x-pve-key": "source"}),
                    "dest": text("Addresses that packets go to.", **{"x-pve-key": "dest"}),
                    "proto": text("Protocol.", enum=["tcp", "udp", "icmp", "icmpv6", "esp"], **{"x-pve-key": "proto"}),
                    "dport": text("Ports that packets go to.", **{"x-pve-key": "dport"}),
                    "sport": text("Ports that packets come from.", **{"x-pve-key": "sport"}),
                    "macro": text("A set of PVE's own, such as SSH.", **{"x-pve-key": "macro"}),
                    "comment": text("What the rule is for; one line.", **{"x-pve-key": "comment"}),
                },
            },
        },
    },
}


def example(name, spec):
    return json.dumps({"apiVersion": "example.org/v1", "kind": KIND, "metadata": {"name": name}, "spec": spec})


EXAMPLES = [
    example("empty", {"group": "empty"}),
    example("web", {
        "group": "web",
        "comment": "Web servers",
        "rules": [
            {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "80,443", "comment": "HTTP"},
            {"type": "in", "action": "ACCEPT", "macro": "SSH", "source": "10.0.0.0/8"},
            {"type": "in", "action": "DROP", "enabled": False, "proto": "tcp", "sport": "25", "dest": "10.1.0.0/16"},
        ],
    }),
]


def error(code, at, message):
    return t.Diagnostic(t.Severity.ERROR, code, at, message, None, [])


def refuse(code, at, message):
    return Err([error(code, at, message)])


def param(key, value, at=None):
    return t.Param(key, t.Value_Text(value), at, [])


def call(operation, set_, unset=(), **variables):
    return t.Step_Call(t.CallStep(operation, list(variables.items()), set_, [t.ParamRef(k, None, []) for k in unset], []))


def printable(value):
    return all(ord(c) >= 32 and ord(c) != 127 for c in value)


def key(name):
    """A field's name as a pointer's segment; None if it can't stand in one."""
    return name.replace("~", "~0").replace("/", "~1") if 0 < len(name) < 200 and name.isprintable() else None


# ---- reading manifests ------------------------------------------------------------------------------------------


def check_fields(value, schema, at, found):
    """Unknown and missing fields of one object, and the types of its texts."""
    known = schema["properties"]
    for name, item in value.items():
        if name not in known:
            pointer = key(name)
            found.append(error("unknown-field", at if pointer is None else f"{at}/{pointer}", "there is no such field"))
        elif known[name]["type"] == "string":
            check_text(item, known[name], f"{at}/{name}", found)
        elif known[name]["type"] == "boolean" and not isinstance(item, bool):
            found.append(error("wrong-type", f"{at}/{name}", f"`{name}` must be true or false"))
    for name in schema["required"]:
        if name not in value:
            found.append(error("missing-field", at, f"`{name}` is missing"))


def check_text(item, schema, at, found):
    name = at.rsplit("/", 1)[1]
    if not isinstance(item, str):
        found.append(error("wrong-type", at, f"`{name}` must be text"))
    elif "enum" in schema and item not in schema["enum"]:
        found.append(error("invalid-value", at, f"`{name}` is one of {', '.join(schema['enum'])}"))
    elif "pattern" in schema and not re.fullmatch(schema["pattern"], item):
        found.append(error("invalid-value", at, f"`{name}` does not look like {schema['pattern']}"))
    elif not printable(item) or item != item.strip() or len(item) > 500 or MARKER.search(item):
        found.append(error("invalid-value", at, f"`{name}` must be one line without blanks around it or a marker"))
    elif item == "" and name != "comment":
        found.append(error("invalid-value", at, f"`{name}` must not be empty"))


def read(manifest):
    """The spec and everything that is wrong with it."""
    found = []
    try:
        spec = json.loads(manifest.spec)
    except (ValueError, RecursionError):
        return {}, [error("not-json", "", "the spec can't be read")]
    if not isinstance(spec, dict):
        return {}, [error("wrong-type", "/spec", "`spec` must be a mapping")]
    spec = {name: value for name, value in spec.items() if value is not None}
    check_fields(spec, SCHEMA, "/spec", found)
    rules = spec.get("rules", [])
    if not isinstance(rules, list):
        found.append(error("wrong-type", "/spec/rules", "`rules` must be a list"))
        return {**spec, "rules": []}, found
    if len(rules) > 500:
        found.append(error("too-many", "/spec/rules", "at most 500 rules"))
        return {**spec, "rules": []}, found
    for index, rule in enumerate(rules):
        at = f"/spec/rules/{index}"
        if isinstance(rule, dict):
            rules[index] = rule = {name: value for name, value in rule.items() if value is not None}
            check_fields(rule, SCHEMA["properties"]["rules"]["items"], at, found)
            if ("dport" in rule or "sport" in rule) and rule.get("proto") not in ("tcp", "udp"):
                found.append(error("port-without-protocol", at, "ports need `proto` tcp or udp"))
        else:
            found.append(error("wrong-type", at, "a rule must be a mapping"))
    return {**spec, "rules": rules}, found


# ---- wire -------------------------------------------------------------------------------------------------------


def wanted_rule(rule):
    """A rule as PVE has it; what is left out is not there."""
    wire = {RULE[name]: str(value) for name, value in rule.items() if name != "enabled" and value != ""}
    wire["enable"] = "1" if rule.get("enabled", True) else "0"
    return wire


def live_rule(row):
    rule = {}
    for name in RULE.values():
        value = row.get(name) if isinstance(row, dict) else None
        if isinstance(value, (str, int, float)) and value != "":
            rule[name] = str(int(value)) if isinstance(value, (bool, float)) else str(value)
    rule.setdefault("enable", "0")
    return rule


def live_rules(live):
    for name, value in live.values:
        if name == "" and isinstance(value, t.LiveValue_Json):
            try:
                rows = json.loads(value.value)
            except (ValueError, RecursionError):
                return []
            return [live_rule(row) for row in rows] if isinstance(rows, list) else []
    return []


def live_comment(live):
    for name, value in live.row:
        if name == "comment" and isinstance(value, t.LiveValue_Text):
            return MARKER.sub("", value.value).rstrip()
    return ""


def comment_param(manifest, spec, context):
    marker = f"proxops:{context.owner_tag}:{KIND}/{manifest.name}"
    return param("comment", f"{spec.get('comment', '')} {marker}".strip(), "/spec/comment")


def show(rule):
    return None if rule is None else " ".join(f"{name}={value}" for name, value in sorted(rule.items()))


def operation(name, method, path, id_param=None, digest=False, part=False):
    return t.Operation(name, method, path, id_param, digest, part, [])


class Api:
    def describe(self):
        one, rule = GROUPS + "/{id}", GROUPS + "/{id}/{pos}"
        target = t.ObjectTarget(
            list=operation("list", t.Method.GET, GROUPS),
            read=operation("read", t.Method.GET, one),
            id_field="group",
            writes=[
                operation("create", t.Method.POST, GROUPS, "group"),
                operation("comment", t.Method.POST, GROUPS, "group", True),
                operation("add-rule", t.Method.POST, one, None, True, True),
                operation("change-rule", t.Method.PUT, rule, None, True, True),
                operation("delete-rule", t.Method.DELETE, rule, None, True, True),
                operation("delete", t.Method.DELETE, one),
            ],
            ownership=t.Ownership_Marker(t.Marker("comment", True)),
            ext=[],
        )
        return t.Info(KIND, VERSION, ["example.org/v1"], "firewall-group", "A security group of the cluster firewall",
                      t.Target_Object(target), json.dumps(SCHEMA, sort_keys=True), EXAMPLES, [])

    def validate(self, manifest):
        spec, found = read(manifest)
        group = spec.get("group")
        validated = None
        if isinstance(group, str) and NAME.fullmatch(group):
            identity = t.Identity_Object(t.ObjectId(group, [], []))
            validated = t.Validated(identity, None, [], [], [], [("group", group)], [], [])
        return t.Validation(validated, found, [])

    def create_params(self, manifest, context):
        spec, found = read(manifest)
        if found:
            raise Err(found)
        # rules follow from `drift`, in the same action
        return t.Creation([call("create", [comment_param(manifest, spec, context)])], [], [], [])

    def drift(self, manifest, live, context):
        spec, found = read(manifest)
        if found:
            raise Err(found)
        if not isinstance(live, t.Live_Object):
            raise refuse("not-an-object", "", "the live object is not one of the API")
        changes, steps = [], []
        now = live_comment(live.value)
        if now != spec.get("comment", ""):
            changes.append(t.Change("/spec/comment", "comment", now or None, spec.get("comment") or None, False, False, []))
            rename = param("rename", spec["group"])  # the same name: only the comment changes
            steps.append(call("comment", [comment_param(manifest, spec, context), rename]))
        have, want = live_rules(live.value), [wanted_rule(rule) for rule in spec["rules"]]
        for pos in range(max(len(have), len(want))):
            old = have[pos] if pos < len(have) else None
            new = want[pos] if pos < len(want) else None
            if old == new:
                continue
            at = f"/spec/rules/{pos}" if new is not None else "/spec/rules"
            changes.append(t.Change(at, f"rule {pos}", show(old), show(new), False, False, []))
            if old is not None and new is not None:
                params = [param(name, value, at) for name, value in sorted(new.items()) if old.get(name) != value]
                steps.append(call("change-rule", params, sorted(set(old) - set(new)), pos=str(pos)))
            elif new is not None:
                params = [param(name, value, at) for name, value in sorted(new.items())]
                steps.append(call("add-rule", params + [param("pos", str(pos))]))
        # from the end, so that those before it keep their positions
        for pos in reversed(range(len(want), len(have))):
            steps.append(call("delete-rule", [], (), pos=str(pos)))
        return t.DriftReport(changes, steps, [], [], [])

    def adopt(self, name, live, context, options):
        if not isinstance(live, t.Live_Object):
            raise refuse("not-an-object", "", "the live object is not one of the API")
        spec = {"group": live.value.id.id}
        comment = live_comment(live.value)
        if comment:
            spec["comment"] = comment
        rules = []
        for rule in live_rules(live.value):
            enabled = rule.pop("enable") != "0"
            rules.append({**{field: rule[wire] for field, wire in RULE.items() if wire in rule},
                          **({} if enabled else {"enabled": False})})
        if rules:
            spec["rules"] = rules
        return t.Adopted([], [], json.dumps(spec), [], [], [], 0, [])

"""Does a document hold to SARIF 2.1.0? The parts of the standard that redhand uses, by hand: which
properties an object may have, which it must have, of what type they are, what they may say."""
import re

TEXT, NUMBER, WHOLE, BOOL = str, (int, float), int, bool

LEVELS = {"none", "note", "warning", "error"}
IMPORTANCE = {"important", "essential", "unimportant"}
COLUMN_KINDS = {"utf16CodeUnits", "unicodeCodePoints"}


def _fail(path, why):
    raise AssertionError(f"{path}: {why}")


def _object(value, path, known, must=()):
    if not isinstance(value, dict):
        _fail(path, "is no object")
    for key in must:
        if key not in value:
            _fail(path, f"lacks {key}")
    for key, item in value.items():
        if key == "properties":
            if not isinstance(item, dict):
                _fail(path, "properties is no object")
        elif key not in known:
            _fail(path, f"may not have {key}")
        else:
            known[key](item, f"{path}.{key}")


def _is(kind):
    def check(value, path):
        if not isinstance(value, kind) or (kind is not BOOL and isinstance(value, bool)):
            _fail(path, f"has the wrong type: {value!r}")
    return check


def _one_of(names):
    def check(value, path):
        if value not in names:
            _fail(path, f"{value!r} is none of {sorted(names)}")
    return check


def _at_least(low):
    def check(value, path):
        _is(WHOLE)(value, path)
        if value < low:
            _fail(path, f"{value} is below {low}")
    return check


def _list(check_item, low=0):
    def check(value, path):
        if not isinstance(value, list) or len(value) < low:
            _fail(path, f"is no list of at least {low}")
        for number, item in enumerate(value):
            check_item(item, f"{path}[{number}]")
    return check


def _map(check_item):
    def check(value, path):
        if not isinstance(value, dict):
            _fail(path, "is no object")
        for key, item in value.items():
            check_item(item, f"{path}.{key}")
    return check


def _message(value, path):
    _object(value, path, {"text": _is(TEXT), "markdown": _is(TEXT), "id": _is(TEXT),
                          "arguments": _list(_is(TEXT))})
    if "text" not in value and "id" not in value:
        _fail(path, "has neither text nor id")


def _uri(value, path):
    _is(TEXT)(value, path)
    if not re.fullmatch(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-F]{2})*", value):
        _fail(path, f"is no URI: {value!r}")


def _artifact_location(value, path):
    _object(value, path, {"uri": _uri, "uriBaseId": _is(TEXT), "index": _at_least(-1),
                          "description": _message})
    if "uriBaseId" in value and re.match(r"[a-z]+:|/", value.get("uri", "")):
        _fail(path, "is absolute and has a base")


def _region(value, path):
    _object(value, path, {name: _at_least(1) for name in
                          ("startLine", "startColumn", "endLine", "endColumn")})


def _physical(value, path):
    _object(value, path, {"artifactLocation": _artifact_location, "region": _region},
            ["artifactLocation"])


def _logical(value, path):
    _object(value, path, {"name": _is(TEXT), "fullyQualifiedName": _is(TEXT),
                          "decoratedName": _is(TEXT), "kind": _is(TEXT), "index": _at_least(-1),
                          "parentIndex": _at_least(-1)})


def _location(value, path):
    _object(value, path, {"id": _at_least(-1), "physicalLocation": _physical,
                          "logicalLocations": _list(_logical), "message": _message})


def _frame(value, path):
    _object(value, path, {"location": _location, "module": _is(TEXT), "threadId": _is(WHOLE),
                          "parameters": _list(_is(TEXT))})


def _stack(value, path):
    _object(value, path, {"message": _message, "frames": _list(_frame)}, ["frames"])


def _flow_location(value, path):
    _object(value, path, {"index": _at_least(-1), "location": _location, "stack": _stack,
                          "kinds": _list(_is(TEXT)), "module": _is(TEXT),
                          "nestingLevel": _at_least(0), "executionOrder": _at_least(-1),
                          "importance": _one_of(IMPORTANCE)})


def _thread_flow(value, path):
    _object(value, path, {"id": _is(TEXT), "message": _message,
                          "locations": _list(_flow_location, 1)}, ["locations"])


def _code_flow(value, path):
    _object(value, path, {"message": _message, "threadFlows": _list(_thread_flow, 1)},
            ["threadFlows"])


def _result(value, path):
    _object(value, path, {
        "ruleId": _is(TEXT), "ruleIndex": _at_least(-1), "level": _one_of(LEVELS),
        "kind": _one_of({"notApplicable", "pass", "fail", "review", "open", "informational"}),
        "message": _message, "locations": _list(_location), "codeFlows": _list(_code_flow),
        "stacks": _list(_stack), "relatedLocations": _list(_location),
        "partialFingerprints": _map(_is(TEXT)), "fingerprints": _map(_is(TEXT)),
        "occurrenceCount": _at_least(1)}, ["message"])
    if value.get("kind", "fail") != "fail" and value.get("level", "none") != "none":
        _fail(path, "has a level without being a failure")


def _rule(value, path):
    configuration = {"enabled": _is(BOOL), "level": _one_of(LEVELS), "rank": _is(NUMBER)}
    _object(value, path, {
        "id": _is(TEXT), "name": _is(TEXT), "shortDescription": _message,
        "fullDescription": _message, "help": _message, "helpUri": _uri,
        "defaultConfiguration": lambda v, p: _object(v, p, configuration)}, ["id"])


def _driver(value, path):
    _object(value, path, {"name": _is(TEXT), "version": _is(TEXT), "semanticVersion": _is(TEXT),
                          "informationUri": _uri, "organization": _is(TEXT),
                          "rules": _list(_rule)}, ["name"])


def _run(value, path):
    _object(value, path, {
        "tool": lambda v, p: _object(v, p, {"driver": _driver}, ["driver"]),
        "originalUriBaseIds": _map(_artifact_location), "results": _list(_result),
        "columnKind": _one_of(COLUMN_KINDS)}, ["tool"])
    bases = value.get("originalUriBaseIds", {})
    for name, base in bases.items():
        # 3.14.14: absolute, and ending in a slash.
        if not base["uri"].startswith("file:///") or not base["uri"].endswith("/"):
            _fail(f"{path}.originalUriBaseIds.{name}", base["uri"])
    rules = value["tool"]["driver"].get("rules", [])
    for number, result in enumerate(value.get("results", [])):
        index = result.get("ruleIndex", -1)
        if index >= 0 and rules[index]["id"] != result["ruleId"]:
            _fail(f"{path}.results[{number}]", "names another rule than its index")


def check_sarif(log):
    _object(log, "log", {"$schema": _uri, "version": _one_of({"2.1.0"}), "runs": _list(_run)},
            ["version", "runs"])

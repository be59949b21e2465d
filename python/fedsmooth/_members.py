"""Decides which nodes can take part in a federation together, by what they say of themselves."""

import tomllib
from collections import Counter
from collections.abc import Mapping

from . import _core, masks
from ._core import Error
from ._messages import Hello, section

MAX_IMAGES = 1_000_000
MAX_CLIENTS = 1_000_000
MAX_NAME = 60
MASKED, MASKED_GROUP = 2, 3  # the fewest nodes of a masked round: without groups, and in each of several groups


def call(number: int, name: str) -> str:
    """Returns a node as messages name it. The node chose its name, so only characters that can be printed are kept."""
    kept = "".join(c for c in name if c.isprintable())[:MAX_NAME]
    return f"{kept} (node {number})" if kept else f"node {number}"


def choose_nodes(
    experiment: str,
    nodes: Mapping[int, Hello],
    *,
    private: bool = False,
    masked: bool = False,
    max_images: int = MAX_IMAGES,
) -> tuple[dict[int, Hello], dict[int, str]]:
    """Returns the nodes that can take part, and for each other node its name and why it cannot. Nodes must have the
    server's software, and the device and arithmetic that most of them have. Private nodes need client numbers of
    their own, other nodes the server's data. Raises an Error if private nodes of several groups share a number."""
    wanted = {"version": _core.version, "commit": _core.commit, "data_sha256": ""}
    if not private:
        wanted["data_sha256"] = _core.Node(experiment, "cpu", 0).facts.data_sha256
    right = [h for h in nodes.values() if all(getattr(h, key) == value for key, value in wanted.items())]
    rounding = Counter((hello.device, hello.arithmetic) for hello in right).most_common(1)
    for (device, arithmetic), _ in rounding:
        wanted |= {"device": device, "arithmetic": arithmetic}
    others = {}
    for number, hello in nodes.items():
        why = _difference(hello, wanted) or _unfit(hello, private, masked, max_images)
        if why:
            others[number] = f"{call(number, hello.name)}: {why}"
    if private:
        twice = _same_numbers({number: hello for number, hello in nodes.items() if number not in others})
        if twice and groups_of(experiment) > 1:  # to leave them out would let one node reach two groups
            raise Error("; ".join(twice.values()))
        others |= twice
    return {number: hello for number, hello in nodes.items() if number not in others}, others


def groups_of(experiment: str) -> int:
    """Returns the number of groups that a federation trains."""
    groups = section(experiment, "groups")
    return groups["count"] if groups["number"] == 0 else 1


def fewest_masked(experiment: str) -> int:
    """Returns the fewest nodes of a masked round: two, or three in each group if there are several. The total of two
    nodes shows each of them the other's sums."""
    return MASKED_GROUP if groups_of(experiment) > 1 else MASKED


def check_masked(experiment: str, nodes: Mapping[int, Hello]) -> None:
    """Raises an Error if the server would give up every masked round of the federation, a group or a cluster, because
    there are too few clients or nodes."""
    fewest, clusters = fewest_masked(experiment), section(experiment, "server")["clusters"]
    wanted = section(experiment, "train")["clients_per_round"]
    of_clusters = f" of each of {clusters} clusters" if clusters > 1 else ""
    if wanted // clusters < fewest:
        of_group = " of a group" if groups_of(experiment) > 1 else ""
        raise Error(f"train.clients_per_round={wanted}: a masked round{of_group} needs {fewest} clients{of_clusters}")
    if groups_of(experiment) > 1:
        _check_masked_groups(experiment, nodes, fewest * clusters)
    elif len(nodes) < fewest * clusters:
        raise Error(f"nodes: {len(nodes)}; masks need {fewest}{of_clusters}")


def _check_masked_groups(experiment: str, nodes: Mapping[int, Hello], fewest: int) -> None:
    count, seed = groups_of(experiment), tomllib.loads(experiment)["seed"]
    members: dict[int, list[str]] = {group: [] for group in range(1, count + 1)}
    for number, hello in nodes.items():
        members[_core.group_of(hello.client, count, seed)].append(call(number, hello.name))
    small = [
        f"group {group} has {len(names)} ({', '.join(names) or 'none'})"
        for group, names in members.items()
        if len(names) < fewest
    ]
    if small:
        raise Error(f"groups.count={count}: under masks each group needs {fewest} nodes; {'; '.join(small)}")


def _difference(hello: Hello, wanted: Mapping[str, str]) -> str:
    for name, value in wanted.items():
        if (found := getattr(hello, name)) != value:
            return f"its {name} is {found!r}, expected {value!r}"
    return ""


def _unfit(hello: Hello, private: bool, masked: bool, max_images: int) -> str:
    if private and not 0 <= hello.client < MAX_CLIENTS:
        return f"its client number is {hello.client}, from 0 to {MAX_CLIENTS - 1} are allowed"
    if private and not 1 <= hello.images <= max_images:
        return f"{hello.images} images, from 1 to {max_images} are allowed"
    if masked and len(hello.public_key) != masks.KEY_BYTES:
        return "has no key for masks"
    return ""


def _same_numbers(nodes: Mapping[int, Hello]) -> dict[int, str]:
    """Returns the nodes whose client number another node has, too, with the reason: nobody can tell whose it is."""
    times = Counter(hello.client for hello in nodes.values())
    return {
        number: f"{call(number, hello.name)}: its client number, {hello.client}, is that of another node, too"
        for number, hello in nodes.items()
        if times[hello.client] > 1
    }

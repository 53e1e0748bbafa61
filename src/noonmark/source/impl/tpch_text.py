"""The words of TPC-H: the value sets that its queries ask for, and pools of text made of them.

Pools are the same in every process: `columns.sentences` hashes, it does not roll dice. They are
made when first asked for, once in a process.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pyarrow as pa

from noonmark.source.impl.columns import sentences

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
# Each nation with the number of its region.
NATIONS = (
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
)
SEGMENTS = pa.array(["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"])
PRIORITIES = pa.array(["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"])
INSTRUCTIONS = pa.array(["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"])
MODES = pa.array(["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"])
STATUS = pa.array(["F", "O", "P"])
FLAGS = pa.array(["A", "N", "R"])
CONTAINERS = pa.array(
    [
        " ".join(pair)
        for pair in product(
            ("JUMBO", "LG", "MED", "SM", "WRAP"),
            ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG"),
        )
    ]
)
TYPES = pa.array(
    [
        " ".join(triple)
        for triple in product(
            ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD"),
            ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED"),
            ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN"),
        )
    ]
)
_COLORS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood "
    "burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep "
    "dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey "
    "honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon "
    "medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya "
    "peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell "
    "sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white "
    "yellow"
)
_WORDS = (
    "accounts across against always among asymptotes blithely bold boost busily carefully "
    "courts daring deposits dependencies detect dolphins dugouts engage escapades even "
    "express final foxes furiously grouches haggle ideas idle instructions integrate ironic "
    "nag never packages patterns pending pinto platelets quickly quietly regular requests "
    "ruthless silent sleep slyly special sublate thinly unusual warhorses wake Customer "
    "Complaints Recommends"
)

POOL = 4_096


@cache
def part_names() -> pa.Array:
    """Five colours each."""
    return sentences(1, POOL, _COLORS.split(), 5, 5)


@cache
def comments() -> pa.Array:
    """A few words each; some have "special ... requests" or "Customer ... Complaints"."""
    return sentences(2, POOL, _WORDS.split(), 3, 9)


@cache
def addresses() -> pa.Array:
    """Two or three words."""
    return sentences(3, POOL, _WORDS.split(), 2, 3)

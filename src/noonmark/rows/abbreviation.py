"""Abbreviations of time zones: PostgreSQL's default set, in minutes east of UTC.

Those whose offset has changed over time stand for a zone, and are not among them.
"""

from __future__ import annotations

_FIXED = """
    acdt 630 acsst 630 acst 570 act -300 acwst 525 adt -180 aedt 660 aesst 660 aest 600 aft 270
    akdt -480 akst -540 almst 420 almt 360 amt -240 ast -240 awsst 540 awst 480 azost 0 azot -60
    bdst 120 bdt 360 bnt 480 bort 480 bot -240 bra -180 brst -120 brt -180 bst 60 btt 360 cadt
    630 cast 570 cct 480 cdt -300 cest 120 cet 60 cetdst 120 chadt 825 chast 765 chut 600 clst
    -180 cot -300 cst -360 cxt 420 ddut 600 eat 180 edt -240 eest 180 eet 120 eetdst 180 egst 0
    egt -60 est -300 fet 180 fjst 780 fjt 720 fnst -60 fnt -120 galt -360 gamt -540 gft -180
    gilt 720 gmt 0 hkt 480 hst -600 ict 420 idt 180 irt 210 ist 120 jayt 540 jst 540 kdt 600
    kgst 360 kst 540 lhst 630 ligt 600 mart -570 mdt -360 mest 120 mesz 120 met 60 metdst 120
    mez 60 mht 720 mmt 390 mpt 600 msd 240 mst -420 must 300 mut 240 mvt 300 myt 480 ndt -150
    nft -210 npt 345 nst -210 nzdt 780 nzst 720 nzt 720 pdt -420 pet -300 pgt 600 pht 480 pkst
    360 pkt 300 pmdt -120 pmst -180 pont 660 pst -480 pwt 540 pyst -180 ret 240 sadt 630 sast
    120 sct 240 taht -600 tft 300 tjt 300 tot 780 trut 600 tvt 720 uct 0 ulast 540 ut 0 utc 0
    uyst -120 uyt -180 uzst 360 uzt 300 vut 660 wadt 480 wakt 720 wast 420 wat 60 wdt 540 wet 0
    wetdst 60 wft 720 wgst -120 wgt -180 xjt 360 yapt 600 yekst 360 z 0 zulu 0
"""
_OF_ZONES = """
    amst anast anat arst art azst azt ckt clt davt easst east fkst fkt gest get gyt iot irkst
    irkt kgt kost krast krat lhdt lint lkt magst magt mawt msk novst novt nut omsst omst petst
    pett pyt sgt tkt tmt ulat vet vlast vlat volt yakst yakt yekt
"""


def _minutes(table: str) -> dict[str, int]:
    words = table.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


MINUTES = _minutes(_FIXED)
#: Abbreviations that stand for a zone.
CHANGED = frozenset(_OF_ZONES.split())

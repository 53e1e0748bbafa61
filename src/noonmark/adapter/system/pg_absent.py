"""pg_catalog's relations for what Noonmark does not have: they are there, and empty."""

from __future__ import annotations

from noonmark.adapter.system.facts import nothing, relation
from noonmark.adapter.system.pg_roles import default_acls

_INT, _TEXT, _BOOL = "integer", "text", "boolean"

RELATIONS = (
    relation(
        "pg_catalog.pg_proc", nothing, 1255,
        oid=_INT, proname=_TEXT, pronamespace=_INT, proowner=_INT, prolang=_INT, procost="real",
        prorows="real", provariadic=_INT, prokind=_TEXT, prosecdef=_BOOL, proleakproof=_BOOL,
        proisstrict=_BOOL, proretset=_BOOL, provolatile=_TEXT, proparallel=_TEXT,
        pronargs="smallint", pronargdefaults="smallint", prorettype=_INT, proargtypes="integer[]",
        proallargtypes="integer[]", proargmodes="text[]", proargnames="text[]", prosrc=_TEXT,
        probin=_TEXT, proconfig="text[]", proacl="text[]",
    ),
    relation(
        "pg_catalog.pg_language", nothing, 2612,
        oid=_INT, lanname=_TEXT, lanowner=_INT, lanispl=_BOOL, lanpltrusted=_BOOL,
    ),
    relation(
        "pg_catalog.pg_enum", nothing, 3501,
        oid=_INT, enumtypid=_INT, enumsortorder="real", enumlabel=_TEXT,
    ),
    relation(
        "pg_catalog.pg_range", nothing, 3541,
        rngtypid=_INT, rngsubtype=_INT, rngmultitypid=_INT, rngcollation=_INT, rngsubopc=_INT,
        rngcanonical=_TEXT, rngsubdiff=_TEXT,
    ),
    relation(
        "pg_catalog.pg_inherits", nothing, 2611,
        inhrelid=_INT, inhparent=_INT, inhseqno=_INT, inhdetachpending=_BOOL,
    ),
    relation(
        "pg_catalog.pg_trigger", nothing, 2620,
        oid=_INT, tgrelid=_INT, tgparentid=_INT, tgname=_TEXT, tgfoid=_INT, tgtype="smallint",
        tgenabled=_TEXT, tgisinternal=_BOOL, tgconstrrelid=_INT, tgconstrindid=_INT,
        tgconstraint=_INT, tgdeferrable=_BOOL, tginitdeferred=_BOOL, tgnargs="smallint",
    ),
    relation(
        "pg_catalog.pg_policy", nothing, 3256,
        oid=_INT, polname=_TEXT, polrelid=_INT, polcmd=_TEXT, polpermissive=_BOOL,
        polroles="integer[]", polqual=_TEXT, polwithcheck=_TEXT,
    ),
    relation(
        "pg_catalog.pg_statistic_ext", nothing, 3381,
        oid=_INT, stxrelid=_INT, stxname=_TEXT, stxnamespace=_INT, stxowner=_INT,
        stxstattarget=_INT, stxkeys="smallint[]", stxkind="text[]", stxexprs=_TEXT,
    ),
    relation(
        "pg_catalog.pg_extension", nothing, 3079,
        oid=_INT, extname=_TEXT, extowner=_INT, extnamespace=_INT, extrelocatable=_BOOL,
        extversion=_TEXT,
    ),
    relation(
        "pg_catalog.pg_publication", nothing, 6104,
        oid=_INT, pubname=_TEXT, pubowner=_INT, puballtables=_BOOL, pubinsert=_BOOL,
        pubupdate=_BOOL, pubdelete=_BOOL, pubtruncate=_BOOL, pubviaroot=_BOOL,
    ),
    relation(
        "pg_catalog.pg_publication_rel", nothing, 6106,
        oid=_INT, prpubid=_INT, prrelid=_INT, prqual=_TEXT, prattrs="smallint[]",
    ),
    relation(
        "pg_catalog.pg_publication_namespace", nothing, 6237,
        oid=_INT, pnpubid=_INT, pnnspid=_INT,
    ),
    relation(
        "pg_catalog.pg_foreign_table", nothing, 3118,
        ftrelid=_INT, ftserver=_INT, ftoptions="text[]",
    ),
    relation(
        "pg_catalog.pg_foreign_server", nothing, 1417,
        oid=_INT, srvname=_TEXT, srvowner=_INT, srvfdw=_INT, srvtype=_TEXT, srvversion=_TEXT,
        srvacl="text[]", srvoptions="text[]",
    ),
    relation(
        "pg_catalog.pg_foreign_data_wrapper", nothing, 2328,
        oid=_INT, fdwname=_TEXT, fdwowner=_INT, fdwhandler=_INT, fdwvalidator=_INT,
        fdwacl="text[]", fdwoptions="text[]",
    ),
    relation(
        "pg_catalog.pg_sequence", nothing, 2224,
        seqrelid=_INT, seqtypid=_INT, seqstart="bigint", seqincrement="bigint", seqmax="bigint",
        seqmin="bigint", seqcache="bigint", seqcycle=_BOOL,
    ),
    relation(
        "pg_catalog.pg_sequences", nothing, 12_008,
        schemaname=_TEXT, sequencename=_TEXT, sequenceowner=_TEXT, last_value="bigint",
    ),
    relation(
        "pg_catalog.pg_opclass", nothing, 2616,
        oid=_INT, opcmethod=_INT, opcname=_TEXT, opcnamespace=_INT, opcowner=_INT,
        opcfamily=_INT, opcintype=_INT, opcdefault=_BOOL, opckeytype=_INT,
    ),
    relation(
        "pg_catalog.pg_operator", nothing, 2617,
        oid=_INT, oprname=_TEXT, oprnamespace=_INT, oprkind=_TEXT, oprcode=_INT, oprleft=_INT,
        oprright=_INT, oprresult=_INT,
    ),
    relation(
        "pg_catalog.pg_cast", nothing, 2605,
        oid=_INT, castsource=_INT, casttarget=_INT, castfunc=_INT, castcontext=_TEXT,
        castmethod=_TEXT,
    ),
    relation(
        "pg_catalog.pg_aggregate", nothing, 2600,
        aggfnoid=_INT, aggkind=_TEXT, aggnumdirectargs="smallint",
    ),
    relation(
        "pg_catalog.pg_partitioned_table", nothing, 3350,
        partrelid=_INT, partstrat=_TEXT, partnatts="smallint", partdefid=_INT,
        partattrs="smallint[]",
    ),
    relation(
        "pg_catalog.pg_event_trigger", nothing, 3466,
        oid=_INT, evtname=_TEXT, evtevent=_TEXT, evtowner=_INT, evtfoid=_INT, evtenabled=_TEXT,
        evttags="text[]",
    ),
    relation(
        "pg_catalog.pg_db_role_setting", nothing, 2964,
        setdatabase=_INT, setrole=_INT, setconfig="text[]",
    ),
    relation(
        "pg_catalog.pg_shdescription", nothing, 2396,
        objoid=_INT, classoid=_INT, description=_TEXT,
    ),
    relation(
        "pg_catalog.pg_seclabel", nothing, 3596,
        objoid=_INT, classoid=_INT, objsubid=_INT, provider=_TEXT, label=_TEXT,
    ),
    relation(
        "pg_catalog.pg_default_acl", default_acls, 826,
        oid=_INT, defaclrole=_INT, defaclnamespace=_INT, defaclobjtype=_TEXT, defaclacl="text[]",
    ),
    relation(
        "pg_catalog.pg_ts_config", nothing, 3602,
        oid=_INT, cfgname=_TEXT, cfgnamespace=_INT, cfgowner=_INT, cfgparser=_INT,
    ),
    relation(
        "pg_catalog.pg_largeobject_metadata", nothing, 2995,
        oid=_INT, lomowner=_INT, lomacl="text[]",
    ),
    relation(
        "pg_catalog.pg_locks", nothing, 12_009,
        locktype=_TEXT, database=_INT, relation=_INT, pid=_INT, mode=_TEXT, granted=_BOOL,
    ),
    relation(
        "pg_catalog.pg_prepared_xacts", nothing, 12_010,
        transaction=_INT, gid=_TEXT, prepared="timestamptz", owner=_TEXT, database=_TEXT,
    ),
    relation(
        "pg_catalog.pg_timezone_names", nothing, 12_011,
        name=_TEXT, abbrev=_TEXT, utc_offset="interval", is_dst=_BOOL,
    ),
)  # fmt: skip

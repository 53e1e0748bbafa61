"""The names of errors, as WHEN in DO says them: PostgreSQL's, of the SQLSTATEs that occur."""

from __future__ import annotations

_NAMES = """
0A000 feature_not_supported, 21000 cardinality_violation, 22000 data_exception, 22001
string_data_right_truncation, 22003 numeric_value_out_of_range, 22004 null_value_not_allowed,
22007 invalid_datetime_format, 22008 datetime_field_overflow, 22012 division_by_zero, 22021
character_not_in_repertoire, 22023 invalid_parameter_value, 22P02 invalid_text_representation,
22P05 untranslatable_character, 23000 integrity_constraint_violation, 23001 restrict_violation,
23502 not_null_violation, 23503 foreign_key_violation, 23505 unique_violation, 23514
check_violation, 23P01 exclusion_violation, 25000 invalid_transaction_state, 25001
active_sql_transaction, 25002 branch_transaction_already_active, 25003
inappropriate_access_mode_for_branch_transaction, 25004
inappropriate_isolation_level_for_branch_transaction, 25005
no_active_sql_transaction_for_branch_transaction, 25006 read_only_sql_transaction, 25007
schema_and_data_statement_mixing_not_supported, 25008 held_cursor_requires_same_isolation_level,
25P01 no_active_sql_transaction, 25P02 in_failed_sql_transaction, 25P03
idle_in_transaction_session_timeout, 25P04 transaction_timeout, 28000
invalid_authorization_specification, 28P01 invalid_password, 2B000
dependent_privilege_descriptors_still_exist, 2BP01 dependent_objects_still_exist, 3F000
invalid_schema_name, 40000 transaction_rollback, 40001 serialization_failure, 40002
transaction_integrity_constraint_violation, 40003 statement_completion_unknown, 40P01
deadlock_detected, 42000 syntax_error_or_access_rule_violation, 42501 insufficient_privilege,
42601 syntax_error, 42602 invalid_name, 42611 invalid_column_definition, 42622 name_too_long,
42701 duplicate_column, 42702 ambiguous_column, 42703 undefined_column, 42704 undefined_object,
42710 duplicate_object, 42712 duplicate_alias, 42723 duplicate_function, 42725
ambiguous_function, 42803 grouping_error, 42804 datatype_mismatch, 42809 wrong_object_type,
42830 invalid_foreign_key, 42846 cannot_coerce, 42883 undefined_function, 428C9
generated_always, 42939 reserved_name, 42P01 undefined_table, 42P02 undefined_parameter, 42P03
duplicate_cursor, 42P04 duplicate_database, 42P05 duplicate_prepared_statement, 42P06
duplicate_schema, 42P07 duplicate_table, 42P08 ambiguous_parameter, 42P09 ambiguous_alias, 42P10
invalid_column_reference, 42P11 invalid_cursor_definition, 42P12 invalid_database_definition,
42P13 invalid_function_definition, 42P14 invalid_prepared_statement_definition, 42P15
invalid_schema_definition, 42P16 invalid_table_definition, 42P17 invalid_object_definition,
42P18 indeterminate_datatype, 42P19 invalid_recursion, 42P20 windowing_error, 42P21
collation_mismatch, 42P22 indeterminate_collation, 53000 insufficient_resources, 53100
disk_full, 53200 out_of_memory, 53300 too_many_connections, 53400 configuration_limit_exceeded,
54000 program_limit_exceeded, 54001 statement_too_complex, 54011 too_many_columns, 54023
too_many_arguments, 55000 object_not_in_prerequisite_state, 55006 object_in_use, 55P02
cant_change_runtime_param, 55P03 lock_not_available, 55P04 unsafe_new_enum_value_usage, 57000
operator_intervention, 57014 query_canceled, 57P01 admin_shutdown, 57P02 crash_shutdown, 57P03
cannot_connect_now, 57P04 database_dropped, 57P05 idle_session_timeout, P0000 plpgsql_error,
P0001 raise_exception, P0002 no_data_found, P0003 too_many_rows, P0004 assert_failure
"""
STATES = {
    name: state for state, name in (each.split() for each in _NAMES.replace("\n", " ").split(","))
}


def is_of(state: str, wanted: str) -> bool:
    """Whether an error is meant: one that ends in 000 stands for its class."""
    return state == wanted or (wanted.endswith("000") and state[:2] == wanted[:2])

-- When the relay's process started, in milliseconds since 1970 by its clock. Distinguishes a new process from an older report.
alter table relay_health add column if not exists process_started_at_ms bigint;

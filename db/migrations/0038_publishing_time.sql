-- compatible: a column that earlier versions neither read nor write.
-- The time with data of the relay's process, in milliseconds, as the process measures it. Null while it is one of a former version,
-- whose time the service judges from pairs of reports.
alter table relay_health add column if not exists publishing_ms bigint;

-- compatible: processes of earlier versions leave the new column as it is.
-- The share of repeats among the packets of the stream, null where the relay does not report it.
alter table relay_health add column if not exists repeat_pct real;

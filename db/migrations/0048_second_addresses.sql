-- compatible: processes of earlier versions leave the new columns null.
-- The IPv6 address of an instance, null where its provider gives it none. `host` is its IPv4 address or its name.
alter table instances add column if not exists host_v6 text;
alter table relay_sessions add column if not exists relay_host_v6 text;

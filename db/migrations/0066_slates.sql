-- compatible: processes of earlier versions neither read nor write the new columns and the new table. Connections that they make get the default.
-- What players see while no stream arrives. Connections that exist before this migration keep `hold`.
alter table connections add column if not exists on_loss text not null default 'hold'
  check (on_loss in ('hold', 'freeze', 'slate'));
alter table connections alter column on_loss set default 'freeze';

-- The images of connections, at most one each, as JPEG that the API has encoded. The digest is SHA-256 in hexadecimal digits.
create table if not exists slates (
  connection_label text        primary key references connections (label) on delete cascade,
  user_id          uuid        not null references users (id) on delete cascade,
  digest           text        not null check (digest ~ '^[0-9a-f]{64}$'),
  image            bytea       not null check (length(image) between 1 and 4194304),
  created_at       timestamptz not null default now()
);
create index if not exists slates_user on slates (user_id);
create index if not exists slates_digest on slates (digest);

-- JPEG is compressed already.
alter table slates alter column image set storage external;

-- The last format that the relay of a session has reported; null before.
alter table relay_sessions add column if not exists stream_format jsonb;

-- A transaction that changes a connection has locked the account, as a start has, so no session misses a change.
create or replace function change_connection_admission(changed_label text) returns void language sql as $$
  update relay_sessions s set admission_revision = greatest(admission_revision + 1,
    floor(extract(epoch from clock_timestamp()) * 1000000)::bigint)
  from connections c
  where c.label = changed_label and s.user_id = c.user_id and s.connection_id = c.name and s.state <> 'stopped'
$$;

create or replace function change_admission_by_connection() returns trigger language plpgsql as $$
begin
  perform change_connection_admission(new.label);
  return null;
end $$;
create or replace trigger connections_change_admission after update on connections
  for each row when (old.on_loss <> new.on_loss) execute function change_admission_by_connection();

create or replace function change_admission_by_slate() returns trigger language plpgsql as $$
begin
  perform change_connection_admission(coalesce(new.connection_label, old.connection_label));
  return null;
end $$;
create or replace trigger slates_change_admission after insert or delete on slates
  for each row execute function change_admission_by_slate();
create or replace trigger slates_change_admission_by_update after update on slates
  for each row when (old.digest <> new.digest) execute function change_admission_by_slate();

-- The row of a deleted connection stays without its name. Processes of earlier versions delete connections too.
create or replace function delete_slate_of_connection() returns trigger language plpgsql as $$
begin
  delete from slates where connection_label = new.label;
  return null;
end $$;
create or replace trigger connections_delete_slate after update on connections
  for each row when (old.name is not null and new.name is null) execute function delete_slate_of_connection();

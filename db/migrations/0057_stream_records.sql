-- compatible: processes of earlier versions do not use the new table and columns, and record no points.
-- The points of the present ten minutes of a session, one for each slot of 10 s up to `record_slot`; 0 for a slot without one.
-- The bits of a point, from the highest one: bitrate in kbps + 1 (20), links (6), players (6), loss in tenths of a
-- percent + 1 (10), round trip in ms + 1 (14). A loss or a round trip that is not stated is 0.
alter table relay_health add column if not exists record_points bigint[];
alter table relay_health add column if not exists record_slot integer;

-- The points of earlier ten minutes, 7 bytes each, from the slot that begins at `began_at`. The row of the health, which
-- goes with its session, is the one that their writers hold: a reference to the session would wait for its transitions.
create table if not exists stream_records (
  session_id uuid        not null references relay_health (session_id) on delete cascade,
  began_at   timestamptz not null,
  points     bytea       not null,
  primary key (session_id, began_at)
);
create index if not exists stream_records_age on stream_records (began_at);

-- A slot has the highest bitrate, the fewest links with a stream, the last number of players, and the greatest loss and round trip.
create or replace function merge_stream_points(stored bigint, added bigint) returns bigint language sql immutable parallel safe as $$
  select (greatest(stored >> 36, added >> 36) << 36)
    | coalesce(least(nullif(stored & 67645734912, 0), nullif(added & 67645734912, 0)), 0)
    | (added & 1056964608)
    | greatest(stored & 16760832, added & 16760832)
    | greatest(stored & 16383, added & 16383)
$$;

create or replace function pack_stream_points(points bigint[]) returns bytea language sql immutable parallel safe as $$
  select string_agg(substring(int8send(point) from 2), ''::bytea order by place)
  from unnest(points) with ordinality as p (point, place)
$$;

-- Arrays with one element for each slot, for the copy of a person's data. Null for a slot without a point.
create or replace function show_stream_points(points bytea) returns json language sql immutable parallel safe as $$
  select json_build_object(
    'bitrate_kbps', json_agg(nullif(point >> 36, 0) - 1 order by place),
    'links', json_agg(case when point > 0 then point >> 30 & 63 end order by place),
    'loss_pct', json_agg((nullif(point >> 14 & 1023, 0) - 1) / 10.0::float8 order by place),
    'rtt_ms', json_agg(nullif(point & 16383, 0) - 1 order by place),
    'players', json_agg(case when point > 0 then point >> 24 & 63 end order by place))
  from (
    select place, ('x' || encode(substring(points from place * 7 + 1 for 7), 'hex'))::bit(56)::bigint as point
    from generate_series(0, length(points) / 7 - 1) place) p
$$;

-- Within the update that begins other ten minutes, or ends the record, so that no point of a concurrent report is lost.
create or replace function store_stream_record() returns trigger language plpgsql as $$
begin
  insert into stream_records (session_id, began_at, points)
  values (old.session_id, to_timestamp((old.record_slot - cardinality(old.record_points) + 1) * 10::float8), pack_stream_points(old.record_points))
  on conflict do nothing;
  return null;
end $$;
create or replace trigger relay_health_store_record after update on relay_health for each row
  when (old.record_slot / 60 is distinct from new.record_slot / 60 and old.record_slot is not null)
  execute function store_stream_record();

create or replace function end_stream_record() returns trigger language plpgsql as $$
begin
  update relay_health set record_points = null, record_slot = null where session_id = new.id and record_slot is not null;
  return null;
end $$;
create or replace trigger relay_sessions_end_record after update of state on relay_sessions for each row
  when (new.state = 'stopped' and old.state <> 'stopped') execute function end_stream_record();

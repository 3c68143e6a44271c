-- compatible: processes of earlier versions neither read nor write the new columns. The triggers fill them in for what they store too.
-- When video first came in for an account, and when a player first played it. Written once.
alter table users add column if not exists first_video_at timestamptz;
alter table users add column if not exists first_player_at timestamptz;

-- Never waits for the account's row inside the statement that stores many reports: what is left out because another
-- transaction holds the row is still known from relay_health, and is stored with the next session or player.
create or replace function record_first_steps() returns trigger language plpgsql as $$
declare
  has_video boolean := new.bytes_received > 0 or new.peak_bitrate_kbps > 0;
  is_played boolean := new.player_code is not distinct from 'playing';
begin
  update users set
    first_video_at = case when has_video then coalesce(first_video_at, now()) else first_video_at end,
    first_player_at = case when is_played then coalesce(first_player_at, now()) else first_player_at end
  where id = (
    select u.id from relay_sessions s join users u on u.id = s.user_id
    where s.id = new.session_id and (has_video and u.first_video_at is null or is_played and u.first_player_at is null)
    for no key update of u skip locked);
  return null;
end $$;
create or replace trigger relay_health_first_steps_insert after insert on relay_health for each row
  when (new.bytes_received > 0 or new.peak_bitrate_kbps > 0 or new.player_code = 'playing')
  execute function record_first_steps();
-- Once a session for the video, and each time that a player begins to play.
create or replace trigger relay_health_first_steps_update after update on relay_health for each row
  when ((new.bytes_received > 0 or new.peak_bitrate_kbps > 0)
      and not (old.bytes_received > 0 or old.peak_bitrate_kbps > 0)
    or new.player_code = 'playing' and old.player_code is distinct from 'playing')
  execute function record_first_steps();

-- What is known of earlier sessions: when the first one with video, and the first one that was played at its last report,
-- became active.
update users u set
  first_video_at = coalesce(u.first_video_at, known.video_at), first_player_at = coalesce(u.first_player_at, known.player_at)
from (
  select s.user_id, min(coalesce(s.active_at, s.created_at)) filter (where h.bytes_received > 0 or h.peak_bitrate_kbps > 0) as video_at,
    min(coalesce(s.active_at, s.created_at)) filter (
      where h.player_code = 'playing' or h.is_publishing and h.bitrate_kbps > 0 and h.players > 0) as player_at
  from relay_health h join relay_sessions s on s.id = h.session_id group by s.user_id
) known
where u.id = known.user_id
  and (u.first_video_at is null and known.video_at is not null or u.first_player_at is null and known.player_at is not null);

-- compatible: changes a trigger only.
-- The key of a connection is made before the session that it opens, or takes the place of a deleted one, so its
-- insertion changes what no live relay admits by. Otherwise a start would end the held reports of all other relays.
create or replace trigger play_keys_change_admission after delete on play_keys
  for each row execute function change_admission_by_key();
create or replace trigger play_keys_change_admission_by_insert after insert on play_keys
  for each row when (new.kind <> 'connection') execute function change_admission_by_key();

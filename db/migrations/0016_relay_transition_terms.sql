-- A change of a session's state is a transition, and who causes it is its initiator.

do $$
begin
  if to_regclass('relay_moves') is not null and to_regclass('relay_legal_transitions') is null then
    alter table relay_moves rename to relay_legal_transitions;
    alter table relay_legal_transitions rename constraint relay_moves_pkey to relay_legal_transitions_pkey;
  end if;
  if exists (select from information_schema.columns where table_schema = current_schema()
      and table_name = 'relay_transitions' and column_name = 'actor') then
    alter table relay_transitions rename column actor to initiator;
    alter index relay_transitions_move rename to relay_transitions_kind;
  end if;
  if exists (select from information_schema.columns where table_schema = current_schema()
      and table_name = 'relay_sessions' and column_name = 'command_actor') then
    alter table relay_sessions rename column command_actor to command_initiator;
  end if;
end $$;

update audit_entries set action = 'session_transitioned' where action = 'session_moved';

create or replace function refuse_illegal_relay_transition() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    if new.state <> 'provisioning' then
      raise exception 'a relay session begins in provisioning, not in %', new.state using errcode = 'check_violation';
    end if;
  elsif new.state <> old.state and not exists (
    select from relay_legal_transitions where from_state = old.state and to_state = new.state and reason = new.reason
  ) then
    raise exception 'the transition of a relay session from % to % for % is not legal', old.state, new.state, new.reason
      using errcode = 'check_violation';
  elsif new.state = old.state and new.reason <> old.reason then
    raise exception 'the reason of a relay session changes only with a transition' using errcode = 'check_violation';
  end if;
  return new;
end $$;

drop trigger if exists relay_sessions_moves on relay_sessions;
create or replace trigger relay_sessions_transitions before insert or update of state, reason on relay_sessions
  for each row execute function refuse_illegal_relay_transition();
drop function if exists refuse_illegal_relay_move();

-- A change of a session's state is a transition, and who causes it is its initiator.

alter table relay_moves rename to relay_legal_transitions;
alter table relay_legal_transitions rename constraint relay_moves_pkey to relay_legal_transitions_pkey;
alter table relay_transitions rename column actor to initiator;
alter index relay_transitions_move rename to relay_transitions_kind;
alter table relay_sessions rename column command_actor to command_initiator;
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

drop trigger relay_sessions_moves on relay_sessions;
create trigger relay_sessions_transitions before insert or update of state, reason on relay_sessions
  for each row execute function refuse_illegal_relay_transition();
drop function refuse_illegal_relay_move();

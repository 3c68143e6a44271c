-- Which identities belong to the owner of their account's address.

-- The account's address, as the identity's provider vouched for it; null when it never did.
alter table user_oauth_accounts add column if not exists vouched_email text;

-- For identities that were linked before this column: a provider vouched for the address when linking the identity verified
-- it in the same transaction, or when the identity was linked by a merge, which begins with the provider's word.
update user_oauth_accounts a set vouched_email = u.email
from users u
where u.id = a.user_id and u.email is not null and a.vouched_email is null
  and (a.linked_at = u.email_verified_at or exists (
    select from audit_entries e
    where e.user_id = a.user_id and e.action = 'merge_confirmed' and e.detail->>'provider' = a.provider and e.at = a.linked_at));

alter table users
  -- Since when all that the account holds is known to the owner of its address only: that owner has opened, reclaimed or reset
  -- it. Null while the address is at most verified, since who verified it need not be who opened the account.
  add column if not exists owner_proved_at timestamptz;

-- Accounts that were opened through a provider which vouches for the address.
update users set owner_proved_at = created_at
where owner_proved_at is null and email_verified_at = created_at;

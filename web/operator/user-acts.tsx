/** The acts of operators on an account, each with a reason. */
import { ActForm } from './act-form.tsx'
import type { AccountDetail } from './operator-replies.ts'

type UserActsProps = Pick<AccountDetail, 'user' | 'entitlement'>

export const UserActs = ({ user, entitlement }: UserActsProps) => {
  const path = `/operator/users/${user.id}`
  const isRefused = entitlement.reason_code === 'operator_disabled'
  return (
    <section class="card" aria-labelledby="acts">
      <h2 id="acts">Act on this account</h2>
      <div class="acts">
        <GrantForm path={path} />
        <ActForm
          id="withdraw"
          action={`${path}/withdraw`}
          label="Withdraw the granted plan"
          explanation="A plan that is paid for at a provider stays. Without one, its relays are ended."
          isDangerous
        />
        {user.disabled ? null : (
          <ActForm
            id="relay-access"
            action={`${path}/relay-access`}
            label={isRefused ? 'Enable relays' : 'Disable relays'}
            explanation={
              isRefused
                ? 'It can start relays again as its plan allows.'
                : 'Ends its live relays. It starts no others, whatever its plan.'
            }
            fields={{ enabled: String(isRefused) }}
            isDangerous={!isRefused}
          />
        )}
        {user.disabled ? (
          <ActForm
            id="enable"
            action={`${path}/enable`}
            label="Enable the account"
            explanation="Its owner can sign in again."
          />
        ) : (
          <ActForm
            id="disable"
            action={`${path}/disable`}
            label="Disable the account"
            explanation="Ends all sign-ins and live relays at once. Its owner cannot sign in."
            isDangerous
          />
        )}
      </div>
    </section>
  )
}

const GrantForm = ({ path }: { readonly path: string }) => (
  <ActForm
    id="grant"
    action={`${path}/grant`}
    label="Grant the paid plan"
    explanation="Replaces an earlier grant. The account pays nothing for it."
  >
    <div class="field">
      <label for="grant-addons">Add-ons</label>
      <select id="grant-addons" name="addons">
        {[0, 1, 2, 3].map((count) => (
          <option key={count} value={count}>
            {count}
          </option>
        ))}
      </select>
    </div>
    <div class="field">
      <label for="grant-until">Until the end of this day (UTC), or without an end</label>
      <input id="grant-until" name="until" type="date" />
    </div>
  </ActForm>
)

/** The address and the password of an account, with the links to the pages that change them. */
import type { Account } from '../api-replies.ts'

export const Profile = ({ user }: { readonly user: Account }) => (
  <section class="card" aria-labelledby="profile">
    <h2 id="profile">Email and password</h2>
    <EmailAddress user={user} />
    <div class="row">
      <a class="button second" href="/account/security/email">
        {user.email === null ? 'Add an email address' : 'Change email'}
      </a>
      {user.email === null ? null : (
        <a class="button second" href="/account/security/password">
          Change password
        </a>
      )}
    </div>
  </section>
)

const EmailAddress = ({ user }: { readonly user: Account }) =>
  user.email === null ? (
    <p>No email address. You sign in with a linked account below.</p>
  ) : (
    <>
      <p class="row" data-email-verified={user.email_verified ? 'yes' : 'no'}>
        <span class="code">{user.email}</span>
        <span class={user.email_verified ? 'badge good' : 'badge warn'}>
          {user.email_verified ? 'Verified' : 'Unverified'}
        </span>
      </p>
      {user.email_verified ? null : (
        <form class="row" method="post" action="/account/verification">
          <p>Open the link we emailed you to verify your email address.</p>
          <button class="second" type="submit">
            Resend link
          </button>
        </form>
      )}
    </>
  )

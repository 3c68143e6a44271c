/** Ids of accounts, sessions, instances and events: monospaced, selected as a whole, and linked to their pages. */

/** In full, to be copied. */
export const Identifier = ({ value }: { readonly value: string }) => <code class="identifier whole">{value}</code>

interface IdentifierLinkProps {
  readonly href: string
  readonly value: string
}

/** Cut off by the style where there is no room, so that a copy is always complete. */
export const IdentifierLink = ({ href, value }: IdentifierLinkProps) => (
  <a class="identifier" href={href} title={value}>
    {value}
  </a>
)

interface UserLinkProps {
  /** What concerns the account: a row of the API. */
  readonly of: { readonly user_id: string | null; readonly masked_email: string | null }
}

/** The masked address, which other accounts may share, with the id. */
export const UserLink = ({ of: { user_id: id, masked_email: email } }: UserLinkProps) =>
  id === null ? (
    <span class="muted">none</span>
  ) : (
    <>
      {email === null ? null : (
        <span class="masked-email" data-masked-email={email}>
          {email}
        </span>
      )}
      <IdentifierLink href={`/operator/users/${id}`} value={id} />
    </>
  )

export const SessionLink = ({ id }: { readonly id: string | null }) =>
  id === null ? <span class="muted">none</span> : <IdentifierLink href={`/operator/sessions/${id}`} value={id} />

export const EventLink = ({ id }: { readonly id: string }) => (
  <IdentifierLink href={`/operator/billing/events/${id}`} value={id} />
)

export const InstanceLink = ({ id }: { readonly id: string | null }) =>
  id === null ? (
    <span class="muted">none</span>
  ) : (
    <IdentifierLink href={`/operator/instances?show=all&instance_id=${encodeURIComponent(id)}`} value={id} />
  )

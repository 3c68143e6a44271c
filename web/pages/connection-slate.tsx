/** The picture that a connection has for its players. */
import type { Connection } from '../api-replies.ts'

interface SlateProps {
  /** Of the page. */
  readonly path: string
  readonly connection: Connection
}

export const Slate = ({ path, connection }: SlateProps) => (
  <section class="card" aria-labelledby="slate">
    <h2 id="slate">{connection.slate === null ? 'The built-in picture' : 'Your picture'}</h2>
    {connection.slate === null ? <BuiltIn /> : <Own path={path} connection={connection} digest={connection.slate} />}
  </section>
)

/** Like the picture that relays have. */
const BuiltIn = () => (
  <>
    <div class="slate built-in" data-slate="built-in">
      Back in a moment
    </div>
    <p class="muted">Players see it with “My picture” until you upload a picture of yours.</p>
  </>
)

const Own = ({ path, connection: { name }, digest }: SlateProps & { readonly digest: string }) => (
  <>
    <img
      class="slate"
      data-slate={digest}
      src={`/api/v1/relay/connections/${name}/slate`}
      alt={`What players of ${name} see`}
    />
    <form class="row" method="post" action={`${path}/slate/remove`} data-once>
      <button class="danger" type="submit">
        Remove<span class="unseen"> the picture</span>
      </button>
      <span class="muted">Then players see “Back in a moment” in its place.</span>
    </form>
  </>
)

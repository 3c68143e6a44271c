/** The card of a session's share link. */
import type { SessionDetail } from '../api-replies.ts'
import { DateTime } from '../time-text.tsx'
import { CopyButton } from './connection-kit.tsx'

interface ShareCardProps {
  readonly link: SessionDetail['share_link']
  /** The address of a link that was just made. */
  readonly url: string | undefined
  /** Of the page. */
  readonly path: string
}

export const ShareCard = ({ link, url, path }: ShareCardProps) => (
  <section class="card" aria-labelledby="share" data-share={link ? 'valid' : 'none'}>
    <h2 id="share">Share this evening</h2>
    <p>
      A link shows the bitrate and the stream events of this relay for 7 days, to everyone who has it. It shows no name,
      no network and nothing of your account.
    </p>
    {url ? <NewLink url={url} /> : null}
    {link ? (
      <p>
        {url ? 'It' : 'This relay is shared. The link'} ends on <DateTime at={link.expires_at} />.
        {url ? '' : ' Its address is not stored, so make a new one if you have lost it; the present one ends then.'}
      </p>
    ) : null}
    <div class="row">
      {url ? null : (
        <form method="post" action={`${path}/share`} data-once>
          <button class="second" type="submit">
            {link ? 'Create a new link' : 'Create link'}
          </button>
        </form>
      )}
      {link ? (
        <form method="post" action={`${path}/share/revoke`}>
          <button class="danger" type="submit">
            End the link
          </button>
        </form>
      ) : null}
    </div>
  </section>
)

const NewLink = ({ url }: { readonly url: string }) => (
  <div class="notice stack" role="status" data-notice="share_created">
    <p>Copy the link now. It is not shown again.</p>
    <p>
      <code id="share-url">{url}</code>
    </p>
    <div>
      <CopyButton id="share-url" label="Copy" subject="the link" />
    </div>
    <p class="unseen" role="status" data-announcements />
  </div>
)

/** A notification as the body of a request to a Discord webhook. */

import type { Notification } from '../../domain/notifications/kinds.ts'
import { describeNotification, type TextFormat } from '../../domain/notifications/texts.ts'

interface Announcement {
  readonly notification: Notification
  readonly link: string
  readonly unsubscribeLink: string | null
}

/** Discord refuses a title of more than 256 characters, with the backslashes. */
const nameLengthMax = 100

/** Mentions are switched off besides, since a name could contain `@everyone`. */
export function toDiscordMessage({ notification, link, unsubscribeLink }: Announcement) {
  const { title, paragraphs } = describeNotification(notification, discordFormat)
  const off = unsubscribeLink === null ? [] : [`[Turn off these notifications](${unsubscribeLink})`]
  return {
    embeds: [
      {
        title,
        url: link,
        description: [...paragraphs, ...off].join('\n\n'),
        timestamp: notification.timestamp,
      },
    ],
    allowed_mentions: { parse: [] },
  }
}

const discordFormat: TextFormat = {
  // Discord shows an escaped ASCII punctuation mark as itself, so no name can be a link, a mention or a heading.
  name: (text) =>
    text
      .slice(0, nameLengthMax)
      .replaceAll(/\s+/g, ' ')
      .replaceAll(/[!-/:-@[-`{-~]/g, String.raw`\$&`),
  // In the time zone of each reader.
  time: (timestamp) => `<t:${Math.floor(Date.parse(timestamp) / 1000)}:f>`,
}

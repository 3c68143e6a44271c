/** Renders the text of a mail as plain text and as HTML. */
import type { MailText } from './texts.ts'

/** For headers and single lines: line breaks and other control characters become spaces. */
export const toLine = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim()

export const renderText = ({ paragraphs, link, notes, unsubscribeLink }: MailText, brandName: string): string =>
  [
    ...paragraphs.map(toLine),
    `${toLine(link.text)}:\n${link.url}`,
    ...notes.map(toLine),
    ...(unsubscribeLink === undefined ? [] : [`Turn these emails off:\n${unsubscribeLink}`]),
    `-- \n${toLine(brandName)}`,
  ].join('\n\n')

/** Without images, scripts and anything else to load. */
export function renderHtml({ title, paragraphs, link, notes, unsubscribeLink }: MailText, brandName: string): string {
  const paragraph = (text: string) => `<p>${escapeHtml(toLine(text))}</p>`
  const anchor = (url: string, text: string) => `<a href="${escapeHtml(url)}">${escapeHtml(toLine(text))}</a>`
  return [
    '<!doctype html>',
    `<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(toLine(title))}</title></head>`,
    '<body style="font-family: sans-serif; line-height: 1.5; max-width: 36em">',
    `<h1 style="font-size: 1.3em">${escapeHtml(toLine(title))}</h1>`,
    ...paragraphs.map(paragraph),
    `<p><strong>${anchor(link.url, link.text)}</strong></p>`,
    ...notes.map(paragraph),
    ...(unsubscribeLink === undefined ? [] : [`<p>${anchor(unsubscribeLink, 'Turn these emails off')}</p>`]),
    `<p>${escapeHtml(toLine(brandName))}</p>`,
    '</body></html>',
  ].join('\n')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character] ?? character)

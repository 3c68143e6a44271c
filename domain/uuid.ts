/** Whether the text has the form of a UUID, in either case. */
export const isUuid = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

/** Whether it is a random one, of version 4. */
export const isRandomUuid = (text: string): boolean => isUuid(text) && /^.{14}4.{4}[89ab]/i.test(text)

/** Whether the text may be the id of an instance, which is the name of a server and therefore a host name. */
export const isInstanceId = (text: string): boolean => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text)

/** The page on which a visitor decides about the request of an app. */

export const connectPath = (id: string): string => `/connect/${id}`

export const isConnectPath = (path: string): boolean => /^\/connect\/[\w-]+$/.test(path)

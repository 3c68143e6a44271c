/** Kinds of IP addresses. */

/** Whether an address stands for all addresses of a machine: relays can bind it, and nobody can send to it. */
export const isUnspecified = (address: string): boolean =>
  address === '0.0.0.0' || /^[0:]*:[0:]*(:0\.0\.0\.0)?$/.test(address)

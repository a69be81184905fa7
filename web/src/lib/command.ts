/** The CLI form of what a button does: everything here can be copied and run in a shell. */

export function shellQuote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

export function command(...words: string[]): string {
  return ['trackbed', ...words].map(shellQuote).join(' ')
}

import { useEffect } from 'react'

/** Keys of a page. Nothing fires while somebody types or holds Ctrl, Alt or Meta. `g r` is written "g r". */
export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>): void {
  useEffect(() => {
    let first = ''
    const press = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement
      if (event.ctrlKey || event.altKey || event.metaKey || typing(at)) return
      const pair = keys[`${first} ${event.key}`]
      const fn = pair ?? keys[event.key]
      first = pair ? '' : event.key
      if (!fn) return
      if (event.key === 'Enter' && /^(A|BUTTON|SUMMARY)$/.test(at.tagName)) return
      event.preventDefault()
      fn(event)
    }
    window.addEventListener('keydown', press)
    return () => window.removeEventListener('keydown', press)
  }, [keys])
}

function typing(at: HTMLElement): boolean {
  if (document.querySelector('[role="dialog"]')) return true
  return (
    at.isContentEditable ||
    (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) && (at as HTMLInputElement).type !== 'checkbox')
  )
}

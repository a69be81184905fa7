import { type RefObject, useEffect, useRef, useState } from 'react'

/** Whether an element is near the window: far cards hold no canvas and ask for nothing. */
export function useNearby(): [RefObject<HTMLElement | null>, boolean] {
  const box = useRef<HTMLElement>(null)
  const [near, setNear] = useState(false)
  useEffect(() => {
    const at = box.current
    if (!at) return
    const watcher = new IntersectionObserver(([entry]) => setNear(entry?.isIntersecting ?? false), {
      rootMargin: '320px',
    })
    watcher.observe(at)
    return () => watcher.disconnect()
  }, [])
  return [box, near]
}

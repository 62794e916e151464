type Listener = () => void;

/** Tells whoever draws the sign-in that a request was refused for want of a session. */
class SessionEnded {
  private readonly listeners = new Set<Listener>();

  tell(): void {
    for (const listener of this.listeners) listener();
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export const sessionEnded = new SessionEnded();

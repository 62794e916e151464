type Listener = () => void;

/** Notifies the session gate that a request was refused because the session has ended. */
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

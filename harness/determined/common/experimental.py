"""``determined.common.experimental`` is not included; importing it says what to use."""

from determined._not_included import refuse

refuse(__name__)

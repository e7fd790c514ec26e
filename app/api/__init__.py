"""APIs: that of executors (``executor_api``) and the one for programs (``v1``)."""

REVOKE DELETE ON event FROM ssh_access_process;

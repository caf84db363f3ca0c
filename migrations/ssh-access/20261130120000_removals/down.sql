DROP INDEX site_change_removal;
